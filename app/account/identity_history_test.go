package account_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// historyModel is what sign-ins, rules and hands have made of memberships, worked out the slow way.
type historyModel struct {
	teams []string
	// rules are the teams that a value of the claim gives.
	rules []historyRule
	// said are the values that people had at their last sign-in or change of rules; hand are
	// memberships by hand, as person and team.
	said map[string][]string
	hand map[string]bool
}

type historyRule struct {
	values []string // all of them
	team   int
}

// teamsOf are the teams of somebody.
func (m *historyModel) teamsOf(person string) []string {
	var teams []string
	for i, team := range m.teams {
		member := m.hand[person+"/"+team]
		for _, r := range m.rules {
			all := r.team == i
			for _, v := range r.values {
				all = all && slices.Contains(m.said[person], v)
			}
			member = member || all
		}
		if member {
			teams = append(teams, team)
		}
	}
	return teams
}

// TestHistoriesOfMemberships: after whatever sign-ins, changes of rules and changes by hand, users are
// in the groups that follow, and in no others; who is in none gets no session.
func TestHistoriesOfMemberships(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			o := openOffice(t)
			m := &historyModel{said: map[string][]string{}, hand: map[string]bool{}}
			var groups []loom.Group
			for i := range 3 {
				m.teams = append(m.teams, fmt.Sprint("team ", i))
				groups = append(groups, o.groupWith(t, o.admin, m.teams[i], loom.RoleReader))
			}
			known := map[string]bool{} // who is a user
			some := func() (values []string) {
				for _, v := range []string{"a", "b", "c"} {
					if random.IntN(2) == 0 {
						values = append(values, v)
					}
				}
				return values
			}
			o.rules(t, o.admin, o.provider.ID)
			for step := range 40 {
				person := fmt.Sprint("p", random.IntN(4))
				what := ""
				switch random.IntN(4) {
				case 0:
					m.rules = nil
					var rules []loom.IdentityRule
					for range random.IntN(4) {
						values := some()
						if len(values) == 0 {
							values = []string{"a"}
						}
						r := historyRule{values, random.IntN(len(groups))}
						m.rules = append(m.rules, r)
						rule := loom.IdentityRule{Group: groups[r.team].ID}
						for _, v := range values {
							rule.Conditions = append(rule.Conditions, loom.Condition{Claim: "groups", Op: loom.ConditionIs, Value: v})
						}
						rules = append(rules, rule)
					}
					what = fmt.Sprintf("rules %v", m.rules)
					o.rules(t, o.admin, o.provider.ID, rules...)
				case 1:
					if !known[person] {
						continue
					}
					team := random.IntN(len(groups))
					key := person + "/" + m.teams[team]
					what = "by hand " + key
					var err error
					if m.hand[key] = !m.hand[key]; m.hand[key] {
						err = o.AddMember(o.ctx, o.admin, groups[team].ID, loom.UserID(person))
					} else {
						err = o.RemoveMember(o.ctx, o.admin, groups[team].ID, loom.UserID(person))
					}
					if err != nil {
						t.Fatal(err)
					}
				default:
					m.said[person] = some()
					what = fmt.Sprintf("%s signs in with %v", person, m.said[person])
					done, err := o.signInAs(t, claimsOf(person, m.said[person]))
					in := len(m.teamsOf(person)) > 0
					if in != (err == nil) || in == done.Cookie.IsZero() {
						t.Fatalf("step %d, %s: a session %v, want %v (%v)", step, what, err == nil, in, err)
					}
					known[person] = known[person] || in
				}
				for person := range known {
					if !known[person] {
						continue
					}
					of, err := o.GroupsOf(o.ctx, o.admin, loom.UserID(person))
					if err != nil {
						t.Fatal(err)
					}
					var names []string
					for _, g := range of {
						names = append(names, g.Name)
					}
					if want := m.teamsOf(person); strings.Join(names, ", ") != strings.Join(want, ", ") {
						t.Fatalf("step %d, %s: %s is in %v, want %v", step, what, person, names, want)
					}
				}
			}
		})
	}
}

func claimsOf(name string, groups []string) map[string]any {
	return map[string]any{"sub": name, "preferred_username": name, "groups": groups}
}
