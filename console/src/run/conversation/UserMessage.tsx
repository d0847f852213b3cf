import type { UserPart } from "@runwire/client";
import { useState } from "react";
import { useText } from "../../text";
import { Button } from "../../ui";
import style from "./UserMessage.module.css";

/** A question of more characters or lines is folded: what was pasted into it should not push the answer out of sight. */
const longQuestion = { characters: 1500, lines: 20 };

/** What the person asked. */
export function UserMessage({ part }: { part: UserPart }) {
  const { t } = useText();
  const isLong = part.text.length > longQuestion.characters || part.text.split("\n", longQuestion.lines + 1).length > longQuestion.lines;
  const [isWhole, setWhole] = useState(false);
  return (
    <article className={style["user"]} aria-label={t.run.parts.you}>
      <div className={style["text"]}>
        <p data-folded={(isLong && !isWhole) || undefined}>{part.text}</p>
        {isLong && !isWhole && (
          <Button size="small" variant="quiet" onClick={() => setWhole(true)}>
            {t.action.showAll}
          </Button>
        )}
      </div>
    </article>
  );
}
