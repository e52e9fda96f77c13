package catalog

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"loom/app/loom"
	"loom/app/store"
)

// ListInput says which entries to list: words to be found in name, label or
// description, and whether deprecated ones only (true) or none of them (false).
// Sorts: "name" (default) and "-updateTime".
type ListInput struct {
	loom.Page
	Q          string
	Deprecated *bool
}

// Item is a newest version with who stored it, and when.
type Item struct {
	Entry loom.Entry
	loom.VersionInfo
}

// List is a page of entries. Next and Prev are cursors, "" where there is no more.
type List struct {
	Items      []Item
	Next, Prev string
	Total      int
}

// Entries lists the newest version of each name of a kind.
func (c *Catalog) Entries(ctx context.Context, actor loom.Actor, kind loom.EntityKind, in ListInput) (List, error) {
	tenant, err := readTenant(actor, kind)
	if err != nil {
		return List{}, err
	}
	filter := in.filter()
	cursor, err := in.Check(3, string(store.CatalogByName), string(store.CatalogByUpdateTime))
	if err != nil {
		return List{}, err
	}
	var name string
	var at time.Time
	if cursor != nil {
		if cursor.Keys[2] != filter {
			field := "after"
			if in.Before != "" {
				field = "before"
			}
			return List{}, loom.InvalidFields([]loom.FieldError{{Field: field, Message: "This cursor belongs to another filter; start from the first page."}})
		}
		name = cursor.Keys[1]
		if at, err = time.Parse(time.RFC3339Nano, cursor.Keys[0]); err != nil || name == "" {
			return List{}, loom.NewError(loom.Invalid, "This cursor is damaged; start from the first page.")
		}
	}
	if err := checkSearch(in.Q); err != nil {
		return List{}, err
	}
	if strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
		return List{}, loom.NewError(loom.Invalid, "This cursor is damaged; start from the first page.")
	}
	forwards := in.Before == ""
	entries, more, total, err := store.CatalogPage(ctx, c.db, tenant, kind, store.CatalogFilter{Q: in.Q, Deprecated: in.Deprecated},
		store.CatalogSort(in.Sort), at, name, forwards, in.Limit)
	if err != nil {
		return List{}, err
	}
	list := List{Items: make([]Item, len(entries)), Total: total}
	for i, e := range entries {
		list.Items[i] = Item{Entry: e.Entry, VersionInfo: e.VersionInfo}
	}
	list.Next, list.Prev = loom.PageCursors(in.Page, list.Items, more, func(item Item) []string {
		return []string{item.Time.UTC().Format(time.RFC3339Nano), item.Entry.Meta().Name, filter}
	})
	return list, nil
}

// filter is a text that differs where the filter does; cursors belong to it.
func (in ListInput) filter() string {
	text := strings.ToLower(strings.Join(strings.Fields(in.Q), " "))
	if in.Deprecated != nil {
		text += "\n" + strconv.FormatBool(*in.Deprecated)
	}
	return text
}
