import type { Place } from './transports.ts';
import type { ServerReport } from './use-server-report.ts';

/** What there is to know about the chosen place, in one line. */
export function toPlaceNote(place: Place, report: ServerReport): string {
  if (place === 'tab') return 'Scripted model, in this page';
  if (report === 'absent') return 'No server here: choose This tab';
  if (place === 'gateway') {
    return report?.gateway === false
      ? 'The gateway is off on this server: choose another place'
      : 'Survives a reload; open a second tab to watch';
  }
  return toModelNote(report) ?? 'Server';
}

/** A key in the environment of the server makes its model a real one. */
function toModelNote(report: Exclude<ServerReport, 'absent'>): string | undefined {
  if (report?.model === 'scripted model') return 'Scripted model, no key needed';
  return report?.model && `Model: ${report.model}`;
}

/** The contract is spoken in one place only: on the gateway. */
export function toContractNote(report: ServerReport): string {
  if (report === 'absent') return 'No server here: the useChat tab can do without';
  if (report?.gateway === false) {
    return 'The gateway is off on this server: the useChat tab can do without';
  }
  return ['OpenAI Agents SDK', toModelNote(report)].filter(Boolean).join(' · ');
}
