package loom

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// documented is the table of docs/decisions/0064-one-decision-point.md with the roles that there are,
// typed from the document and not from may.go: the roles that may in all of their tenant
// (u, a and s), whether the owner may, and the scope that a token needs.
var documented = map[Verb]struct {
	roles string
	owner bool
	scope Scope
}{
	"see":        {"as", true, "read"},
	"read":       {"uas", false, "read"}, // "every member reads the catalog"
	"create":     {"uas", false, "clusters:write"},
	"operate":    {"as", true, "clusters:write"},
	"own":        {"as", true, "clusters:write"},
	"override":   {"as", false, "clusters:write"},
	"publish":    {"as", false, "catalog:write"},
	"administer": {"as", false, "admin"},
	"install":    {"s", false, "admin"},
	"self":       {"", true, "admin"},
	"profile":    {"", true, "clusters:write"},
}

// surprises lists where a table decides otherwise than the document: all verbs, to do and
// to look, of all roles, by session and by tokens with one scope each, on what is one's
// own, another's, another tenant's, the tenant, another tenant and the installation.
func surprises(t table) []string {
	var found []string
	letters := map[Role]string{"user": "u", "admin": "a", "superadmin": "s"}
	objects := map[string]Object{"own": {"here", "me"}, "foreign": {"here", "you"}, "abroad": {"there", "me"}, "tenant": {Tenant: "here"}, "other tenant": {Tenant: "there"}, "installation": {}}
	for verb, says := range documented {
		for role, letter := range letters {
			for place, o := range objects {
				for _, scopes := range [][]Scope{nil, {"read"}, {"clusters:write"}, {"catalog:write"}, {"admin"}} {
					for _, look := range []bool{false, true} {
						inTenant := slices.Contains([]string{"own", "foreign", "tenant"}, place)
						entitled := inTenant && strings.Contains(says.roles, letter) || place == "own" && says.owner
						if verb == "install" {
							entitled = letter == "s"
						}
						seen := slices.Contains([]string{"own", "tenant", "installation"}, place) || place == "foreign" && letter != "u"
						asked, scope := verb, says.scope
						if look {
							asked, scope = verb.Reading(), "read"
						}
						enough := scopes == nil || scopes[0] == scope || scopes[0] == "admin" || scope == "read"
						var want error
						switch {
						case !entitled && !seen:
							want = NotFound
						case !entitled || !enough:
							want = Forbidden
						}
						err := t.may(Actor{Tenant: "here", User: "me", Role: role, Scopes: scopes}, asked, o)
						if !errors.Is(err, want) {
							found = append(found, fmt.Sprintf("%s as %s with %v on %s: %v, want %v", asked, role, scopes, place, err, want))
						}
					}
				}
			}
		}
	}
	return found
}

func TestVerbsAreAsDocumented(t *testing.T) {
	t.Parallel()
	if len(verbs) != len(documented) {
		t.Errorf("%d verbs, of which %d are documented", len(verbs), len(documented))
	}
	for _, s := range surprises(verbs) {
		t.Error(s)
	}
}

// TestMutantsOfTheTableAreCaught changes one thing of the table at a time: each change of
// a scope, an owner, a role, or a reach, and each verb that is missing.
func TestMutantsOfTheTableAreCaught(t *testing.T) {
	t.Parallel()
	mutants := 0
	mutate := func(verb Verb, what string, change func(r *rule)) {
		mutants++
		mutant := maps.Clone(verbs)
		r := mutant[verb]
		r.roles = slices.Clone(r.roles)
		change(&r)
		mutant[verb] = r
		if len(surprises(mutant)) == 0 {
			t.Errorf("%s: nobody notices %s", verb, what)
		}
	}
	for verb, r := range verbs {
		for _, scope := range Scopes {
			if scope != r.scope {
				mutate(verb, "the scope "+string(scope), func(r *rule) { r.scope = scope })
			}
		}
		if !r.everywhere && len(r.roles) < len(members) { // else it makes no difference
			mutate(verb, "the owner", func(r *rule) { r.owner = !r.owner })
		}
		mutate(verb, "the reach", func(r *rule) { r.everywhere = !r.everywhere })
		for _, role := range members {
			mutate(verb, "the role "+string(role), func(r *rule) {
				if i := slices.Index(r.roles, role); i >= 0 {
					r.roles = slices.Delete(r.roles, i, i+1)
				} else {
					r.roles = append(r.roles, role)
				}
			})
		}
		mutate(verb, "that it is missing", func(r *rule) { *r = rule{} })
	}
	if mutants < 10 {
		t.Errorf("only %d mutants", mutants)
	}
}

// TestNobodyMayWhatHasNoVerb: an actor of nowhere may nothing, and nobody what is in no table.
func TestNobodyMayWhatHasNoVerb(t *testing.T) {
	t.Parallel()
	admin := Actor{Tenant: SuperTenant, User: AdminUser, Role: RoleSuperadmin}
	for _, verb := range []Verb{"", reading, "open", Verb("see" + reading + reading)} {
		if admin.May(verb, admin.Mine()) == nil {
			t.Errorf("%q is allowed", verb)
		}
	}
	for verb := range verbs {
		if (Actor{}).May(verb, Installation) == nil || (Actor{}).MayAtAll(verb) == nil {
			t.Errorf("nobody may %s", verb)
		}
	}
}
