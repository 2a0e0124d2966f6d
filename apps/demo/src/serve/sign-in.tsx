import { type FormEvent, useEffect, useId, useRef, useState } from 'react';

type SignInProps = {
  /** The server has refused a token. */
  isRefused: boolean;
  onToken(token: string): void;
};

/** Asks for a token, and says what is wrong with the last one. */
export function SignIn({ isRefused, onToken }: SignInProps) {
  const [token, setToken] = useState('');
  const fieldRef = useRef<HTMLInputElement>(null);
  useEffect(() => fieldRef.current?.focus(), []);
  const fieldId = useId();
  const helpId = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) onToken(token.trim());
    setToken('');
  };
  return (
    <main className="scroller grid h-full place-items-center px-4 py-8">
      <form className="grid w-full max-w-sm gap-4" onSubmit={submit}>
        <h2 className="font-serif text-3xl leading-tight tracking-tight">
          This server asks for a token
        </h2>
        {isRefused ? (
          <p
            className="rounded-xl border border-terracotta/45 bg-terracotta-wash px-4 py-3 text-sm leading-relaxed"
            role="alert"
          >
            <strong className="font-semibold">The server does not know this token.</strong> It may
            be mistyped, cut off when it was copied, or expired. Enter it again, or ask the person
            who runs this server for a new one.
          </p>
        ) : null}
        <div className="grid gap-1.5">
          <label className="text-sm font-semibold" htmlFor={fieldId}>
            Token
          </label>
          <input
            aria-describedby={helpId}
            autoComplete="off"
            className="rounded-xl border border-line-strong/60 bg-raised px-3.5 py-2.5 focus:border-sea"
            id={fieldId}
            onChange={(event) => setToken(event.target.value)}
            ref={fieldRef}
            required
            type="password"
            value={token}
          />
          <p className="text-sm leading-relaxed text-ink-soft" id={helpId}>
            The person who runs this server has set it, with <code>--token</code> or{' '}
            <code>SABIR_TOKEN</code>. This window keeps it until it is closed.
          </p>
        </div>
        <button
          className="rounded-full bg-sea px-5 py-2.5 text-on-sea hover:opacity-90"
          type="submit"
        >
          Sign in
        </button>
      </form>
    </main>
  );
}
