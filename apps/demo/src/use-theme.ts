import { useEffect, useState } from 'react';

export type Theme = 'light' | 'dark';

const KEY = 'sabir-demo:theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

/** Follows the system until the person chooses; choosing what the system has follows it again. */
export function useTheme(): { theme: Theme; toggle(): void } {
  const [systemTheme, setSystemTheme] = useState<Theme>(system.matches ? 'dark' : 'light');
  const [chosen, setChosen] = useState<Theme | undefined>(readChosen);

  useEffect(() => {
    const update = () => setSystemTheme(system.matches ? 'dark' : 'light');
    system.addEventListener('change', update);
    return () => system.removeEventListener('change', update);
  }, []);

  const theme = chosen ?? systemTheme;
  return {
    theme,
    toggle() {
      const next: Theme = theme === 'dark' ? 'light' : 'dark';
      const choice = next === systemTheme ? undefined : next;
      setChosen(choice);
      apply(choice);
    },
  };
}

function readChosen(): Theme | undefined {
  const { theme } = document.documentElement.dataset;
  return theme === 'light' || theme === 'dark' ? theme : undefined;
}

function apply(choice: Theme | undefined): void {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  try {
    if (choice) localStorage.setItem(KEY, choice);
    else localStorage.removeItem(KEY);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
}
