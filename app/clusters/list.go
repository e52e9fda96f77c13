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

// ListInput asks for a page of clusters. The page sorts by createTime (default,
// newest first), name, expireTime or status.
type ListInput struct {
	loom.Page
	Statuses []loom.ClusterStatus
	// Health keeps those with this health.
	Health   []loom.HealthStatus
	Template string
	Provider string
	// Owner narrows the list for administrators; others see only their own anyway.
	Owner string
	// Shared keeps clusters of others that a role on them or on their template shows to the actor.
	Shared bool
	// Labels must all be on the cluster; ExpiresBefore, unless zero, keeps those
	// whose lease ends before it.
	Labels        map[string]string
	ExpiresBefore time.Time
	// Q holds words that must all occur in name, description, id, a host name or
	// an address, and terms such as status:failed or -label:team=web (loom.ParseSearch).
	Q string
	// IDs, unless empty, are the only clusters listed.
	IDs []loom.ClusterID
	// Uncounted leaves out the total, which costs more the more clusters match.
	Uncounted bool
	// CountOnly leaves out the clusters and gives the total alone.
	CountOnly bool
	// Brief leaves out of each cluster how far its operation is.
	Brief bool
}

// List is a page of clusters; Next and Prev are cursors, Total counts all
// matches as far as loom.CountLimit and one more, and is 0 where it was left out.
type List struct {
	Items      []loom.ClusterSummary
	Next, Prev string
	Total      int
}

// Clusters lists the clusters that the actor may see. Invalid for a wrong sort,
// limit, status or cursor.
func (u *Clusters) Clusters(ctx context.Context, actor loom.Actor, in ListInput) (List, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return List{}, err
	}
	var errs []loom.FieldError
	for _, s := range in.Statuses {
		if !slices.Contains(loom.ClusterStatuses, s) {
			errs = append(errs, loom.FieldError{Field: "status", Message: "A status is pending, active, incomplete, inconsistent or terminated."})
		}
	}
	for _, s := range in.Health {
		if !slices.Contains(loom.ClusterHealthStatuses, s) {
			errs = append(errs, loom.FieldError{Field: "health", Message: "A health is healthy, degraded, failing, unknown or off."})
		}
	}
	f := store.ClusterFilter{
		Owner: loom.UserID(in.Owner), Statuses: in.Statuses, Health: in.Health, Template: in.Template, Provider: in.Provider,
		Labels: in.Labels, ExpiresBefore: in.ExpiresBefore, IDs: in.IDs, Uncounted: in.Uncounted, CountOnly: in.CountOnly, Brief: in.Brief,
	}
	errs = append(errs, readSearch(in.Q, &f)...)
	if len(in.Labels) > 0 {
		errs = append(errs, loom.CheckLabels(in.Labels)...)
	}
	errs = append(errs, checkStorable("template", in.Template)...)
	errs = append(errs, checkStorable("provider", in.Provider)...)
	errs = append(errs, checkStorable("owner", in.Owner)...)
	if err := loom.InvalidFields(errs); err != nil {
		return List{}, err
	}
	f.Viewer = store.SeenBy(actor)
	if in.Shared {
		f.Shared = store.SharedWith(actor)
	}
	page, err := store.ClustersByTenant(ctx, u.q, actor.Tenant, f, in.Page)
	if err != nil {
		return List{}, err
	}
	err = u.markLeases(ctx, actor.Tenant, page.Items)
	return List{Items: page.Items, Next: page.Next, Prev: page.Prev, Total: page.Total}, err
}

// CountInput asks for the counts of a list: its search and statuses, which narrow all of
// them, and what is chosen of its facets.
type CountInput struct {
	Statuses []loom.ClusterStatus
	Owner, Q string
	Shared   bool
	// Health is changing, failed or a loom.HealthStatus.
	Health, Template, Label, Lease string
}

// Counts are those of a list and of its scopes, FacetCount that of a value of a facet.
type (
	Counts     = store.ClusterCounts
	FacetCount = store.FacetCount
)

// The values of the facet of health besides those of loom.HealthStatus.
const (
	FacetChanging = store.FacetChanging
	FacetFailed   = store.FacetFailed
)

// Count counts the clusters that the actor may see by the facets of a list, in one query.
// Invalid for a search or a lease that cannot be read.
func (u *Clusters) Count(ctx context.Context, actor loom.Actor, in CountInput) (Counts, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return Counts{}, err
	}
	f, reader := store.ClusterFilter{Owner: loom.UserID(in.Owner), Statuses: in.Statuses, Viewer: store.SeenBy(actor)}, store.SharedWith(actor)
	if in.Shared {
		f.Shared = reader
	}
	errs := slices.Concat(readSearch(in.Q, &f), checkStorable("owner", in.Owner), checkStorable("health", in.Health), checkStorable("template", in.Template), checkStorable("label", in.Label))
	chosen := store.ClusterFacets{Health: in.Health, Template: in.Template, Label: in.Label}
	if in.Lease != "" {
		seconds, ok := leaseValue(in.Lease)
		if chosen.Lease = seconds; !ok {
			errs = append(errs, loom.FieldError{Field: "lease", Message: "Enter none, ended or a time such as 48h or 7d."})
		}
	}
	if err := loom.InvalidFields(errs); err != nil {
		return Counts{}, err
	}
	return store.CountClusters(ctx, u.q, actor.Tenant, f, chosen, reader)
}

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

// Find returns the clusters that the actor may see and that match a search as a list of
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
		found.Nodes, clusters, err = store.SearchFewLetters(ctx, u.q, actor.Tenant, f.Viewer, word, limit)
		f.OfNodes = &clusters
	default:
		found.Nodes, err = store.SearchNodes(ctx, u.q, actor.Tenant, f.Viewer, word, limit)
	}
	if err != nil {
		return found, err
	}
	page, err := store.ClustersByTenant(ctx, u.q, actor.Tenant, f, loom.Page{Limit: limit})
	found.Clusters = page.Items
	return found, err
}

// TenantCounts counts the clusters of the actor's tenant that are not terminated, by
// status, for its administrators. Forbidden.
func (u *Clusters) TenantCounts(ctx context.Context, actor loom.Actor) (map[loom.ClusterStatus]int, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.LiveClusters(ctx, u.q, actor.Tenant)
}

// OfTenants asks for a part of the clusters of all tenants.
type OfTenants struct {
	Page loom.Page
	store.ClusterOfTenantFilter
}

// OfTenantsFilter limits it.
type OfTenantsFilter = store.ClusterOfTenantFilter

// ClusterOfTenant is a cluster as superadmins see it: by name and number.
type ClusterOfTenant = store.ClusterOfTenant

// OfTenantsList is a page of it, the newest cluster first.
type OfTenantsList struct {
	Items      []ClusterOfTenant
	Next, Prev string
}

// ClustersOfTenants lists the clusters of all tenants, by name and number only, for
// superadmins. Errors: Forbidden; Invalid for a status that there is not.
func (u *Clusters) ClustersOfTenants(ctx context.Context, actor loom.Actor, in OfTenants) (OfTenantsList, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return OfTenantsList{}, err
	}
	if in.Status != "" && !slices.Contains(loom.ClusterStatuses, in.Status) {
		return OfTenantsList{}, loom.InvalidFields([]loom.FieldError{{Field: "status", Message: "A cluster is pending, active, incomplete, inconsistent or terminated."}})
	}
	items, next, prev, err := store.ClusterListAllTenants(ctx, u.q, in.ClusterOfTenantFilter, in.Page)
	return OfTenantsList{Items: items, Next: next, Prev: prev}, err
}

// markLeases marks the clusters of a list whose lease is over or that its owner is
// reminded of, and says what happens to those that are in their time of grace.
func (u *Clusters) markLeases(ctx context.Context, tenant loom.TenantID, items []loom.ClusterSummary) error {
	if len(items) == 0 {
		return nil
	}
	settings, err := store.Settings(ctx, u.kept, tenant)
	if err != nil {
		return err
	}
	now := time.Now() // for display only
	for i := range items {
		c := &items[i]
		if c.Expires.IsZero() || c.Status == loom.ClusterTerminated {
			continue
		}
		if deleted := c.Expires.Add(settings.Grace()); !now.Before(c.Expires) && now.Before(deleted) {
			c.DeletedAt = deleted
		}
	}
	return nil
}
