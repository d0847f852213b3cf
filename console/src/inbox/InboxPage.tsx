import { useRef } from "react";
import { useWaiting } from "../client";
import { useText } from "../text";
import { Empty, ErrorNote, Loading, Page, useRowKeys } from "../ui";
import { QuestionCard } from "./QuestionCard";
import { keyOf, useSeen } from "./useSeen";
import style from "./InboxPage.module.css";

/** Everything that waits for a person. */
export function InboxPage() {
  const { t } = useText();
  const inbox = useWaiting();
  const seen = useSeen(inbox.interactions);
  const frame = useRef<HTMLUListElement>(null);
  useRowKeys(seen.map(keyOf), frame);
  const count = inbox.interactions.length;
  const answered = () => void inbox.refresh();
  return (
    <Page title={t.inbox.title} width="reading" below={count > 0 ? t.inbox.count(count) : undefined}>
      {inbox.error !== undefined && seen.length === 0 && <ErrorNote error={inbox.error} onRetry={() => void inbox.refresh()} />}
      {inbox.isLoading && <Loading />}
      {!inbox.isLoading && inbox.error === undefined && count === 0 && (
        <Empty icon="inbox" title={t.inbox.empty} detail={t.inbox.emptyDetail} />
      )}
      {seen.length > 0 && (
        <ul ref={frame} aria-label={t.inbox.list} className={style["list"]}>
          {seen.map((interaction) => (
            <QuestionCard
              key={keyOf(interaction)}
              interaction={interaction}
              unfolded={interaction.kind === "approval" || seen.length === 1}
              onAnswered={answered}
            />
          ))}
        </ul>
      )}
    </Page>
  );
}
