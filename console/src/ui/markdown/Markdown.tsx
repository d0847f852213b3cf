import { memo, useMemo, useRef } from "react";
import { useText } from "../../text";
import { classNames } from "../classNames";
import { CopyButton } from "../CopyButton";
import { BlockParser, renderCode, renderProse, type Block } from "./parse";
import "./markdown.css";

interface MarkdownProps {
  text: string;
  /** Shows a caret at the end while the text is streamed. */
  streaming?: boolean;
  className?: string;
}

/** Markdown that may still be streamed. It is sanitized, and loads no remote images. */
export function Markdown({ text, streaming = false, className }: MarkdownProps) {
  const parser = useRef<BlockParser>(null);
  parser.current ??= new BlockParser();
  const blocks = parser.current.parse(text);
  return (
    <div className={classNames("markdown", streaming && "streaming", className)}>
      {blocks.map((block, index) =>
        block.kind === "code" ? (
          <CodeBlock key={index} code={block.code} language={block.language} />
        ) : (
          <Prose key={index} source={block.source} />
        ),
      )}
    </div>
  );
}

const Prose = memo(function Prose({ source }: { source: (Block & { kind: "prose" })["source"] }) {
  const html = useMemo(() => ({ __html: renderProse(source) }), [source]);
  return <div className="block" dangerouslySetInnerHTML={html} />;
});

/** A highlighted code block with a copy button. */
export const CodeBlock = memo(function CodeBlock({ code, language = "" }: { code: string; language?: string }) {
  const { t } = useText();
  const html = useMemo(() => ({ __html: renderCode(code, language) }), [code, language]);
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{language === "" ? t.markdown.code : language}</span>
        <CopyButton text={code.replace(/\n$/, "")} />
      </div>
      <pre tabIndex={0}>
        <code dangerouslySetInnerHTML={html} />
      </pre>
    </div>
  );
});
