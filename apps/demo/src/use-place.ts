import { useState } from 'react';
import type { Place } from './transports.ts';

const KEY = 'sabir-demo:place';
const PLACES: readonly Place[] = ['server', 'tab', 'gateway'];

/** Where the flow runs; remembered between visits. */
export function usePlace(): [Place, (place: Place) => void] {
  const [place, setPlace] = useState<Place>(() => {
    try {
      const stored = localStorage.getItem(KEY);
      return PLACES.find((place) => place === stored) ?? 'server';
    } catch {
      // Storage may be forbidden; the choice then lasts as long as the page.
      return 'server';
    }
  });
  return [
    place,
    (next) => {
      setPlace(next);
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // As above.
      }
    },
  ];
}
