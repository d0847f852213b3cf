import { memo, useMemo, useRef } from "react";
import { useText } from "../../text";
import { classNames } from "../classNames";
import { CopyButton } from "../CopyButton";
import { BlockParser, renderCode, renderProse, type Block } from "./parse";
import "./markdown.css";

interface MarkdownProps {
  text: string;
  /** Shows a quiet caret at the end while text still comes. */
  streaming?: boolean;
  className?: string;
}

/** Shows markdown, also while it is still being written. Nothing in it can run, and no remote image is loaded. */
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

/** Shows code with light colours and a button that copies it. */
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
