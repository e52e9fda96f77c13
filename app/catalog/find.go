package catalog

import (
	"context"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
	"loom/app/store"
)

// FoundEntry names an entry that a search found.
type FoundEntry = store.FoundEntry

// checkSearch refuses what no entry can hold, and too many words. Invalid.
func checkSearch(text string) error {
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return loom.InvalidFields([]loom.FieldError{{Field: "q", Message: "This text holds characters that cannot be searched for."}})
	}
	_, err := loom.SearchWords(text)
	return err
}

// Find gives the entries of the actor's tenant that have all words of a text in name,
// label or description, limit of them at most, in one query for all kinds: to
// administrators of every kind, to others the templates that are offered. Invalid for a
// text that no entry can hold, and for too many words.
func (c *Catalog) Find(ctx context.Context, actor loom.Actor, text string, limit int) ([]FoundEntry, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return nil, err
	}
	if err := checkSearch(text); err != nil {
		return nil, err
	}
	kinds, all := []loom.EntityKind{loom.KindTemplate}, actor.May(loom.Publish.Reading(), actor.InTenant()) == nil
	if all {
		kinds = loom.TenantKinds
	}
	return store.FindCatalog(ctx, c.db, actor.Tenant, kinds, text, all, limit)
}
