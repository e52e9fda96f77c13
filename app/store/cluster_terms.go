package store

import (
	"strconv"
	"strings"

	"github.com/lib/pq"

	"loom/app/loom"
)

// ClusterTerms lists the fields that terms of a search for clusters may have.
var ClusterTerms = []string{"status", "template", "provider", "owner", "label", "service", "name", "id", "node", "ip", "lease"}

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
			return "jsonb_exists(c.labels, " + b.add(key) + ")"
		}
		return "c.labels->>" + b.add(key) + " = " + b.add(wanted)
	case "service":
		return "jsonb_exists(c.services, " + b.add(value) + ")"
	case "name":
		return "strpos(lower(c.name), " + b.add(lower) + ") > 0"
	case "id":
		return "strpos(lpad(c.id::text, 8, '0'), " + b.add(lower) + ") > 0"
	case "node":
		return "c.id IN (SELECT n.cluster_id FROM nodes n WHERE n.tenant_id = " + tenant + " AND strpos(n.hostname, " + b.add(lower) + ") > 0)"
	case "ip":
		return "c.id IN (SELECT n.cluster_id FROM nodes n WHERE n.tenant_id = " + tenant +
			" AND n.ipaddresses <> '{}' AND EXISTS (SELECT FROM jsonb_each_text(n.ipaddresses) a WHERE strpos(a.value, " + b.add(lower) + ") > 0))"
	case "lease":
		return b.leaseCondition(value)
	}
	return ""
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
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		numbers[i] = int64(id)
	}
	return "c.id = ANY (" + b.add(pq.Array(numbers)) + ")"
}
