import { useState } from 'react';

const KEY = 'sabir:token';

/** The token of this window, if it has one. */
export function useToken(): [token: string | undefined, save: (token: string) => void] {
  const [token, setToken] = useState(takeToken);
  const save = (next: string) => {
    sessionStorage.setItem(KEY, next);
    setToken(next);
  };
  return [token, save];
}

/** Moves the token from behind the # of the address, which no server sees, into this window's storage. */
function takeToken(): string | undefined {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given !== null) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, '', location.pathname + location.search);
  }
  return sessionStorage.getItem(KEY) ?? undefined;
}
