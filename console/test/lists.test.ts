import { describe, expect, it } from "vitest";
import { mergeFirstPage, replaceItems, appendPage, type ListPage, type ItemIdentity } from "../src/client/mergePages";

interface Item {
  id: number;
  state: string;
}

const shape: ItemIdentity<Item> = {
  idOf: (item) => String(item.id),
  createdAt: (item) => String(item.id).padStart(8, "0"),
  isSame: (left, right) => left.state === right.state,
};

const items = (from: number, to: number, state = "a"): Item[] =>
  Array.from({ length: from - to + 1 }, (_, at) => ({ id: from - at, state }));
const page = (from: number, to: number, next: string | null = String(to)): ListPage<Item> => ({ items: items(from, to), next });
const ids = (list: ListPage<Item>) => list.items.map((item) => item.id);

describe("a polled list", () => {
  it("stays the same object if nothing changed", () => {
    const known = appendPage(page(10, 6), page(5, 1, null), shape);
    expect(mergeFirstPage(known, page(10, 6), shape)).toBe(known);
  });

  it("prepends new items and keeps older pages", () => {
    const known = appendPage(page(10, 6), page(5, 1, null), shape);
    const next = mergeFirstPage(known, page(12, 8), shape);
    expect(ids(next)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    expect(next.next).toBeNull();
  });

  it("replaces only changed items", () => {
    const known = page(5, 1);
    const next = mergeFirstPage(known, { items: [...items(5, 5, "b"), ...items(4, 1)], next: "1" }, shape);
    expect(next.items[0]).toEqual({ id: 5, state: "b" });
    expect(next.items[1]).toBe(known.items[1]);
  });

  it("removes items that left the filter", () => {
    const known = appendPage(page(10, 6), page(5, 1, null), shape);
    const next = mergeFirstPage(known, { items: [...items(10, 9), ...items(7, 5)], next: "5" }, shape);
    expect(ids(next)).toEqual([10, 9, 7, 6, 5, 4, 3, 2, 1]);
  });

  it("removes items that left the filter even if the page ends with a new item", () => {
    const known = page(10, 6);
    const next = mergeFirstPage(known, { items: [...items(10, 9), ...items(7, 5)], next: "5" }, shape);
    expect(ids(next)).toEqual([10, 9, 7, 6, 5]);
    expect(next.next).toBe("5");
  });

  it("is reset if there is a gap", () => {
    const next = mergeFirstPage(page(10, 6), page(50, 46), shape);
    expect(ids(next)).toEqual([50, 49, 48, 47, 46]);
    expect(next.next).toBe("46");
  });

  it("is empty if the server's list is empty", () => {
    expect(ids(mergeFirstPage(page(3, 1, null), { items: [], next: null }, shape))).toEqual([]);
  });

  it("has no duplicates when pages overlap", () => {
    expect(ids(appendPage(page(10, 6), page(7, 3), shape))).toEqual([10, 9, 8, 7, 6, 5, 4, 3]);
  });

  it("replaces single items", () => {
    const next = replaceItems(page(3, 1), items(2, 2, "b"), shape);
    expect(next.items.map((item) => item.state)).toEqual(["a", "b", "a"]);
  });
});
