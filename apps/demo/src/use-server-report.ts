import { useEffect, useState } from 'react';

/** What the server says about itself; `absent` where there is none. */
export type ServerReport =
  | { model?: string; agent?: string; gateway?: boolean }
  | 'absent'
  | undefined;

export function useServerReport(): ServerReport {
  const [report, setReport] = useState<ServerReport>();
  useEffect(() => {
    const leaving = new AbortController();
    fetch('/healthz', { signal: leaving.signal })
      .then(async (response) => setReport(await response.json()))
      .catch(() => {
        if (!leaving.signal.aborted) setReport('absent');
      });
    return () => leaving.abort();
  }, []);
  return report;
}
