package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lib/pq"

	"loom/app/loom"
)

// ClusterTerms lists the fields that terms of a search for clusters may have.
var ClusterTerms = []string{"status", "template", "provider", "owner", "label", "service", "uses", "name", "id", "node", "ip", "lease"}

// LeaseNone and LeaseEnded are values of the term "lease" besides whole seconds,
// within which the lease ends.
const (
	LeaseNone  = "none"
	LeaseEnded = "ended"
)

// termConditions are the conditions of terms; those with unknown fields are left out,
// and so are values of "lease" that are no number.
func (b *binder) termConditions(tenant string, terms []loom.SearchTerm) []string {
	var conditions []string
	for _, term := range terms {
		var any []string
		for _, value := range term.Values {
			if c := b.termCondition(tenant, term.Field, value); c != "" {
				any = append(any, c)
			}
		}
		if len(any) == 0 {
			continue
		}
		condition := "(" + strings.Join(any, " OR ") + ")"
		if term.Not {
			condition += " IS NOT TRUE"
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

func (b *binder) termCondition(tenant, field, value string) string {
	lower := strings.ToLower(value)
	switch field {
	case "status":
		return "c.status = " + b.add(lower)
	case "template":
		return "c.template_name = " + b.add(value)
	case "provider":
		return "c.provider_name = " + b.add(value)
	case "owner":
		return "c.owner_id = " + b.add(value)
	case "label":
		key, wanted, exact := strings.Cut(value, "=")
		if !exact {
			return "c.labels ? " + b.add(key)
		}
		return "c.labels @> " + b.add(jsonOf(map[string]string{key: wanted})) + "::jsonb"
	case "service":
		return "c.service_names @> ARRAY[" + b.add(value) + "::text]"
	case "uses":
		return b.usesCondition(value)
	case "name":
		return "lower(c.name) LIKE " + b.add(likeAnywhere(lower))
	case "id":
		return "loom_pad(c.id) LIKE " + b.add(likeAnywhere(lower))
	case "node":
		return "c.id IN (" + b.nodesWith(tenant, lower, true, false) + ")"
	case "ip":
		return "c.id IN (" + b.nodesWith(tenant, lower, false, true) + ")"
	case "lease":
		return b.leaseCondition(value)
	}
	return ""
}

// usesCondition is the condition that a cluster is made from a template or has a service of a
// name, in a version where the value is NAME@VERSION.
func (b *binder) usesCondition(value string) string {
	name, text, _ := strings.Cut(value, "@")
	version, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		entry := b.add(value)
		return "(c.template_name = " + entry + " OR c.service_names @> ARRAY[" + entry + "::text])"
	}
	entry, number := b.add(name), b.add(version)
	return "(c.template_name = " + entry + " AND c.template_version = " + number +
		" OR c.service_names @> ARRAY[" + entry + "::text] AND (c.services->" + entry + "::text->>'version')::int = " + number + ")"
}

func (b *binder) leaseCondition(value string) string {
	switch value {
	case LeaseNone:
		return "c.expires_at IS NULL"
	case LeaseEnded:
		return "c.expires_at <= now()"
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return ""
	}
	return "c.expires_at < now() + make_interval(secs => " + b.add(seconds) + ")"
}

// ids limits a list to these clusters.
func (b *binder) clusterIDs(ids []loom.ClusterID) string {
	return "c.id = ANY (" + b.add(idArray(ids)) + ")"
}

func idArray(ids []loom.ClusterID) any {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		numbers[i] = int64(id)
	}
	return pq.Array(numbers)
}

// searches says whether the filter looks for text, for which there is no order: what is
// found is looked for at once and sorted then.
func (f *ClusterFilter) searches() bool {
	return len(f.Words) > 0 || slices.ContainsFunc(f.Terms, func(t loom.SearchTerm) bool {
		return slices.Contains([]string{"name", "id", "node", "ip"}, t.Field)
	})
}

// clusterHas is the condition that a word is in name, description, id, a host name or
// an address. Each side is found by an index of trigrams where there is one
// (clusters_words, nodes_words); put together with OR they would not be. Of few letters
// no trigram is made: of clusters there is an index for them (clusters_pairs). Clusters of
// nodes with the word that are known already are not looked for again.
func (b *binder) clusterHas(tenant, word string, known *[]loom.ClusterID) string {
	word = strings.ToLower(word)
	var has string
	if FewLetters(word) {
		has = "loom_pairs(w.name, w.description, w.id) @> ARRAY[" + b.add(word) + "::text]"
	} else {
		like := b.add(likeAnywhere(word))
		has = "(lower(w.name) LIKE " + like + " OR lower(w.description) LIKE " + like + " OR loom_pad(w.id) LIKE " + like + ")"
	}
	var ofNodes string
	if known == nil {
		ofNodes = b.nodesWith(tenant, word, true, true)
	} else {
		ofNodes = "SELECT unnest(" + b.add(idArray(*known)) + "::bigint[])"
	}
	return `c.id IN (
    SELECT w.id FROM clusters w WHERE w.tenant_id = ` + tenant + ` AND ` + has + `
    UNION ` + ofNodes + `)`
}

// FewLetters says whether a word is too short for the indexes of trigrams: LIKE would
// read all of one and then all rows as well. A word with a line feed is left to it, since
// searched_nodes has one between two addresses.
func FewLetters(word string) bool {
	return word != "" && utf8.RuneCountInString(word) < 3 && !strings.Contains(word, "\n")
}

// nodesWith selects the clusters of nodes with a text in host name, address or either. Of
// few letters they are looked for in searched_nodes, one by one, by the cheapest means
// there are: an index of pairs would be written by too much that happens to nodes.
func (b *binder) nodesWith(tenant, text string, name, address bool) string {
	from := "nodes"
	hostname, addresses := b.hostnameHas, b.addressHas
	if FewLetters(text) {
		from = "searched_nodes"
		given := b.add(text)
		hostname = func(string) string { return "strpos(n.hostname, " + given + ") > 0" }
		addresses = func(string) string { return "strpos(n.addresses, " + given + ") > 0" }
	}
	var has []string
	if name {
		has = append(has, hostname(text))
	}
	if address {
		has = append(has, addresses(text))
	}
	return "SELECT n.cluster_id FROM " + from + " n WHERE n.tenant_id = " + tenant + " AND (" + strings.Join(has, " OR ") + ")"
}

// hostnameHas is the condition that a text is in the host name of node n.
func (b *binder) hostnameHas(text string) string {
	return "n.hostname LIKE " + b.add(likeAnywhere(text))
}

// addressHas is the condition that a text is in an address of node n. The text of all
// of them, which is indexed, has their names as well: who is found by it is looked at
// again.
func (b *binder) addressHas(text string) string {
	quoted := jsonOf(text)
	return `(n.ipaddresses::text LIKE ` + b.add(likeAnywhere(quoted[1:len(quoted)-1])) + `
       AND EXISTS (SELECT FROM jsonb_each_text(n.ipaddresses) a WHERE strpos(a.value, ` + b.add(text) + `) > 0))`
}

// likeAnywhere is the pattern of LIKE for texts that hold this one.
func likeAnywhere(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
}

// jsonOf writes texts and maps of them as the database writes jsonb: no character is
// escaped that need not be.
func jsonOf(v any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("store: texts are not JSON: %v", err)) // they always are
	}
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(text.String(), "\n"))
}

// ClusterFilter narrows the list of clusters; empty fields do not filter.
type ClusterFilter struct {
	Owner loom.UserID
	// Viewer sees all clusters that are listed; see SeenBy.
	Viewer Viewer `json:",omitzero"`
	// Shared, unless zero, is with whom clusters of others are shared that are listed; see SharedWith.
	Shared   Viewer `json:",omitzero"`
	Statuses []loom.ClusterStatus
	Health   []loom.HealthStatus
	Template string
	Provider string
	// Labels must all be on the cluster with these values.
	Labels map[string]string
	// ExpiresBefore keeps clusters whose lease ends before it.
	ExpiresBefore time.Time
	// Words must all be found in name, description, id, a host name or an
	// address; letters of either case match.
	Words []string
	// Terms are further conditions, by the fields of ClusterTerms.
	Terms []loom.SearchTerm
	// IDs, unless empty, are the only clusters listed.
	IDs []loom.ClusterID
	// Uncounted leaves out the total, which costs more the more clusters match.
	Uncounted bool `json:"-"`
	// CountOnly gives the total alone, without clusters.
	CountOnly bool `json:"-"`
	// Brief leaves out of each cluster how far its operation is, which costs more the
	// more tasks that has.
	Brief bool `json:"-"`
	// OfNodes, unless nil, are the newest clusters with a node that has the only word, as
	// SearchFewLetters gives them: for the first page of a list in the default order that
	// is narrowed by nothing else, and no longer than they are many.
	OfNodes *[]loom.ClusterID `json:"-"`
}

// binder numbers the placeholders of a statement put together from parts.
type binder struct{ values []any }

func (b *binder) add(v any) string {
	b.values = append(b.values, v)
	return fmt.Sprintf("$%d", len(b.values))
}

func (f *ClusterFilter) where(b *binder, tenant loom.TenantID) string {
	t := b.add(tenant)
	conditions := []string{"c.tenant_id = " + t}
	conditions = append(conditions, b.seen(f.Viewer)...)
	if f.Owner != "" {
		conditions = append(conditions, "c.owner_id = "+b.add(f.Owner))
	}
	if f.Shared.User != "" {
		conditions = append(conditions, b.ofOthers(f.Shared))
	}
	if len(f.Statuses) > 0 {
		// In the collation of clusters_by_status, for few among many; and as other
		// indexes have it, for all that live.
		conditions = append(conditions, `c.status COLLATE "C" = ANY (`+b.add(pq.Array(f.Statuses))+")")
		if !slices.Contains(f.Statuses, loom.ClusterTerminated) {
			conditions = append(conditions, "c.status <> 'terminated'")
		}
	}
	if len(f.Health) > 0 {
		conditions = append(conditions, "c.status <> 'terminated' AND EXISTS (SELECT FROM cluster_health h WHERE h.cluster_id = c.id AND "+clusterHealth+" = ANY ("+b.add(pq.Array(f.Health))+"))")
	}
	if f.Template != "" {
		conditions = append(conditions, "c.template_name = "+b.add(f.Template))
	}
	if f.Provider != "" {
		conditions = append(conditions, "c.provider_name = "+b.add(f.Provider))
	}
	if len(f.Labels) > 0 {
		conditions = append(conditions, "c.labels @> "+b.add(jsonOf(f.Labels))+"::jsonb")
	}
	if !f.ExpiresBefore.IsZero() {
		conditions = append(conditions, "c.expires_at < "+b.add(f.ExpiresBefore))
	}
	if len(f.IDs) > 0 {
		conditions = append(conditions, b.clusterIDs(f.IDs))
	}
	conditions = append(conditions, b.termConditions(t, f.Terms)...)
	for _, word := range f.Words {
		conditions = append(conditions, b.clusterHas(t, word, f.OfNodes))
	}
	return strings.Join(conditions, "\n  AND ")
}

// fingerprint ties cursors to the filter they were made with.
func (f *ClusterFilter) fingerprint() string { return fingerprintOf(f) }
