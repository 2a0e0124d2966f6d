import type { FileUIPart } from 'ai';
import { CrossIcon, FileIcon } from './icons.tsx';

type FileListProps = {
  files: readonly FileUIPart[];
  /** Absent for files that are part of a message. */
  onRemove?(file: FileUIPart): void;
};

/** Pictures, and other files by their names. */
export function FileList({ files, onRemove }: FileListProps) {
  if (files.length === 0) return null;
  return (
    <ul aria-label="Files" className="flex flex-wrap gap-2" data-part="files">
      {files.map((file) => (
        <li className="relative" key={`${file.filename} ${file.url.length} ${file.url.slice(-64)}`}>
          <FileView file={file} isSmall={onRemove !== undefined} />
          {onRemove ? (
            <button
              aria-label={`Remove ${toName(file)}`}
              className="absolute -top-1.5 -right-1.5 grid size-6 place-items-center rounded-full border border-line-strong/60 bg-raised hover:border-ink-soft"
              onClick={() => onRemove(file)}
              type="button"
            >
              <CrossIcon />
            </button>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

function FileView({ file, isSmall }: { file: FileUIPart; isSmall: boolean }) {
  const { url, mediaType } = file;
  // Only what the message itself holds: an address would make the reader's browser call it.
  const isHeld = url.startsWith('data:');
  if (isHeld && mediaType.startsWith('image/')) {
    const size = isSmall ? 'size-16 object-cover' : 'max-h-72 max-w-full object-contain';
    return <img alt={toName(file)} className={`${size} rounded-xl border border-line`} src={url} />;
  }
  const look =
    'flex max-w-64 items-center gap-2 rounded-xl border border-line bg-raised px-3 py-2 text-sm';
  const name = (
    <>
      <FileIcon />
      <span className="truncate">{toName(file)}</span>
    </>
  );
  if (isSmall || !(isHeld || /^https?:/i.test(url))) return <span className={look}>{name}</span>;
  return (
    <a
      className={`${look} hover:border-sea`}
      {...(isHeld ? { download: toName(file) } : { target: '_blank' })}
      href={url}
      rel="noreferrer"
    >
      {name}
    </a>
  );
}

function toName({ filename, mediaType }: FileUIPart): string {
  return filename || (mediaType.startsWith('image/') ? 'Picture' : 'File');
}
