package catalog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"loom/app/loom"
	"loom/app/store"
)

// ListInput says which entries to list: words to be found in name, label or
// description, whether deprecated ones only (true) or none of them (false), and what is
// chosen of each facet. Counted asks for the facets. Sorts: "name" (default) and "-updateTime".
type ListInput struct {
	loom.Page
	Q          string
	Deprecated *bool
	FacetChoice
	Counted bool
	// Names, unless nil, are the entries that may be listed.
	Names []string
	// Released lists newest released versions to administrators too.
	Released bool
}

// Item is a newest version with who saved it, and when.
type Item struct {
	Entry loom.Entry
	loom.VersionInfo
}

// List is a page of entries. Next and Prev are cursors, "" where there is no more.
type List struct {
	Items      []Item
	Next, Prev string
	Total      int
	// Facets are those of all entries of the kind, if they were asked for.
	Facets Facets
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
	f := store.CatalogFilter{Q: in.Q, Deprecated: in.Deprecated, Names: in.Names, Released: in.Released || !kind.Global() && !seesUnreleased(actor)}
	var facets Facets
	if in.Counted || in.FacetChoice != (FacetChoice{}) {
		if facets, f.Names, err = c.facets(ctx, actor, tenant, kind, in); err != nil {
			return List{}, err
		}
	}
	entries, more, total, err := store.CatalogPage(ctx, c.db, tenant, kind, f,
		store.CatalogSort(in.Sort), at, name, forwards, in.Limit)
	if err != nil {
		return List{}, err
	}
	list := List{Items: make([]Item, len(entries)), Total: total, Facets: facets}
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
	if in.FacetChoice != (FacetChoice{}) {
		text += fmt.Sprintf("\n%q", in.FacetChoice)
	}
	return text
}
