package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// maxTerms keeps a search from becoming a statement of any length, as loom.MaxWords does.
	maxTerms = 10
	// maxValues is how many values a term may have.
	maxValues = 50
)

// readSearch puts what is searched for into a filter.
func readSearch(q string, f *store.ClusterFilter) []loom.FieldError {
	if errs := checkStorable("q", q); len(errs) > 0 {
		return errs
	}
	words, terms, err := loom.ParseSearch(q, store.ClusterTerms...)
	if err != nil {
		return loom.AsError(err).Fields
	}
	wrong := func(format string, args ...any) []loom.FieldError {
		return []loom.FieldError{{Field: "q", Message: fmt.Sprintf(format, args...)}}
	}
	if len(words) > loom.MaxWords || len(terms) > maxTerms {
		return wrong("Search for at most %d words and %d terms.", loom.MaxWords, maxTerms)
	}
	for i := range terms {
		t := &terms[i]
		if len(t.Values) > maxValues {
			return wrong("“%s:” takes at most %d values.", t.Field, maxValues)
		}
		for n, value := range t.Values {
			switch t.Field {
			case "status":
				if !slices.Contains(loom.ClusterStatuses, loom.ClusterStatus(strings.ToLower(value))) {
					return wrong("There is no status “%.40s”; statuses are pending, active, incomplete, inconsistent and terminated.", value)
				}
			case "lease":
				seconds, ok := leaseValue(value)
				if !ok {
					return wrong("“lease:%.40s” says no time; write lease:none, lease:ended, or within which time the lease ends, such as lease:48h or lease:7d.", value)
				}
				t.Values[n] = seconds
			}
		}
	}
	f.Words, f.Terms = words, terms
	return nil
}

// leaseValue reads none, ended, or a time such as 48h or 7d, which becomes seconds.
func leaseValue(text string) (string, bool) {
	text = strings.ToLower(text)
	if text == store.LeaseNone || text == store.LeaseEnded {
		return text, true
	}
	units := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
	if text == "" || units[text[len(text)-1:]] == 0 {
		return "", false
	}
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || n < 0 || n > 100_000 {
		return "", false
	}
	return strconv.Itoa(n * int(units[text[len(text)-1:]]/time.Second)), true
}

// FoundNode is a node that a search found.
type FoundNode = store.FoundNode

// Found is what a search finds of clusters, the newest first, and nodes of live ones.
type Found struct {
	Clusters []loom.ClusterSummary
	Nodes    []FoundNode
}

// Find gives the clusters that the actor may see and that match a search as a list of
// them does, and the nodes with the search, which is a word then, in host name or address;
// limit of each at most. How far operations are is left out. Invalid for a search that
// cannot be read.
func (u *Clusters) Find(ctx context.Context, actor loom.Actor, q string, limit int) (Found, error) {
	var found Found
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return found, err
	}
	f := store.ClusterFilter{Viewer: store.SeenBy(actor), Uncounted: true, Brief: true}
	if err := loom.InvalidFields(readSearch(q, &f)); err != nil {
		return found, err
	}
	var err error
	word := strings.ToLower(strings.TrimSpace(q))
	switch {
	case strings.ContainsAny(word, " \"") || len(word) < 2:
	case store.FewLetters(word) && len(f.Words) == 1 && len(f.Terms) == 0:
		// Each node is looked at for it: once for both.
		var clusters []loom.ClusterID
		found.Nodes, clusters, err = store.SearchFewLetters(ctx, u.db, actor.Tenant, f.Viewer, word, limit)
		f.OfNodes = &clusters
	default:
		found.Nodes, err = store.SearchNodes(ctx, u.db, actor.Tenant, f.Viewer, word, limit)
	}
	if err != nil {
		return found, err
	}
	page, err := store.ClustersByTenant(ctx, u.db, actor.Tenant, f, loom.Page{Limit: limit})
	found.Clusters = page.Items
	return found, err
}
