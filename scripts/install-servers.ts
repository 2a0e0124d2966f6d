/**
 * Some tests start servers of their own, from the system's packages. Where we may (root, apt) these
 * are installed; elsewhere those tests report themselves as skipped and say why.
 */
import { read, run } from './run-command.ts';

/** Commands, and the packages they come with. */
const SERVERS = { 'redis-server': 'redis-server', nginx: 'nginx-light' };

export function installServers(): void {
  const missing = Object.entries(SERVERS).filter(([command]) => !isInstalled(command));
  if (missing.length === 0) return;
  const names = missing.map(([command]) => command).join(' and ');
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || read('which', ['apt-get']) === undefined) {
    console.log(`No ${names}, and only root can install with apt-get: their tests are skipped.`);
    return;
  }
  console.log(`Installing ${names} for the tests of several gateways …`);
  process.env.DEBIAN_FRONTEND = 'noninteractive';
  run('apt-get', ['update', '-qq']);
  const packages = missing.map(([, name]) => name);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages]);
}

function isInstalled(command: string): boolean {
  // nginx is where only root looks.
  return (
    read('which', [command]) !== undefined || read(`/usr/sbin/${command}`, ['-v']) !== undefined
  );
}
