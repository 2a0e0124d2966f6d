import { createRoot } from 'react-dom/client';
import { SessionEditor } from './session-editor.tsx';

const sessionId = new URLSearchParams(location.search).get('session') ?? 'harbour';
const token = await (await fetch('/api/token', { method: 'POST' })).text();
const root = document.getElementById('root');
if (root) createRoot(root).render(<SessionEditor sessionId={sessionId} token={token} />);
