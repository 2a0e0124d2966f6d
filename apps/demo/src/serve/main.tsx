import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '../styles.css';
import { ServePage } from './serve-page.tsx';

const root = document.getElementById('root');
if (!root) throw new Error('The page has no #root to draw on.');

createRoot(root).render(
  <StrictMode>
    <ServePage />
  </StrictMode>,
);
