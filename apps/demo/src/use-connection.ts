import { useEffect, useState, useSyncExternalStore } from 'react';
import { type Connection, createConnection } from './connection.ts';

/** Nobody should have to remember to switch it back. */
const MEND_MS = 10_000;

/** A connection that comes back by itself when it has been cut for a while. */
export function useConnection(): Connection {
  const [connection] = useState(createConnection);
  const isCut = useSyncExternalStore(connection.subscribe, () => connection.isCut);
  useEffect(() => {
    if (!isCut) return;
    const timer = setTimeout(connection.mend, MEND_MS);
    return () => clearTimeout(timer);
  }, [connection, isCut]);
  return connection;
}
