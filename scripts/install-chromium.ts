/**
 * Browser tests need a Chromium on the system. Where we may (root, apt) it is installed; elsewhere
 * those tests report themselves as skipped and say why.
 */
import { findChromium } from './chromium.ts';
import { read, run } from './run-command.ts';

export function installChromium(): void {
  if (findChromium()) return;
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || read('which', ['apt-get']) === undefined) {
    console.log(
      'Chromium is not installed, and only root can with apt-get: its tests are skipped.',
    );
    return;
  }
  console.log('Installing Chromium for the browser tests …');
  process.env.DEBIAN_FRONTEND = 'noninteractive';
  run('apt-get', ['update', '-qq']);
  run('apt-get', ['install', '-y', '-qq', 'chromium', 'fonts-liberation']);
}
