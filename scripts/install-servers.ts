/**
 * Some tests start servers of their own, from the system's packages. Where we may (root, apt) these
 * are installed; elsewhere those tests report themselves as skipped and say why.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { read, run } from './run-command.ts';

/** Commands, and the packages they come with. */
const SERVERS: Record<string, string> = { 'redis-server': 'redis-server', nginx: 'nginx-light' };
/** For the test of the alert rules. */
const PROMTOOL = 'promtool';

export function installServers(): void {
  const missing = [...Object.keys(SERVERS), PROMTOOL].filter((command) => !isInstalled(command));
  if (missing.length === 0) return;
  const names = missing.join(' and ');
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || read('which', ['apt-get']) === undefined) {
    console.log(`No ${names}, and only root can install with apt-get: their tests are skipped.`);
    return;
  }
  console.log(`Installing ${names} for the tests that need them …`);
  process.env.DEBIAN_FRONTEND = 'noninteractive';
  run('apt-get', ['update', '-qq']);
  const packages = missing.flatMap((command) => SERVERS[command] ?? []);
  if (packages.length > 0) {
    run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages]);
  }
  if (missing.includes(PROMTOOL)) installPromtool();
}

/** Only this file of its package, which would bring a server and a web page along. */
function installPromtool(): void {
  const cwd = mkdtempSync(join(tmpdir(), 'sabir-promtool-'));
  run('apt-get', ['download', '-qq', 'prometheus'], { cwd });
  run('sh', ['-c', 'dpkg-deb --fsys-tarfile *.deb | tar -x -C / ./usr/bin/promtool'], { cwd });
  rmSync(cwd, { recursive: true });
}

function isInstalled(command: string): boolean {
  // nginx is where only root looks.
  return (
    read('which', [command]) !== undefined || read(`/usr/sbin/${command}`, ['-v']) !== undefined
  );
}
