/**
 * The tests of turns in Redis start servers of their own, from the system's package. Where we may
 * (root, apt) it is installed; elsewhere those tests report themselves as skipped and say why.
 */
import { read, run } from './run-command.ts';

export function installRedis(): void {
  if (read('which', ['redis-server']) !== undefined) return;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || read('which', ['apt-get']) === undefined) {
    console.log('Redis is not installed, and only root can with apt-get: its tests are skipped.');
    return;
  }
  console.log('Installing Redis for the tests of turns that several gateways share …');
  process.env.DEBIAN_FRONTEND = 'noninteractive';
  run('apt-get', ['update', '-qq']);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server']);
}
