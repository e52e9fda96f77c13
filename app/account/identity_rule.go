package account

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// IdentityRules returns the rules of an identity provider of the actor's tenant. Errors: Forbidden,
// NotFound.
func (a *Accounts) IdentityRules(ctx context.Context, actor loom.Actor, id string) ([]loom.IdentityRule, error) {
	p, err := a.IdentityProvider(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return store.IdentityRulesAllTenants(ctx, a.db, p.ID)
}

// RoleChange is a role that people gain or lose, where it holds.
type RoleChange struct {
	loom.Grant
	Tenant loom.TenantID
	Gained bool
	Users  []loom.UserID
}

// RulesPreview is what a change of rules does to the people that an identity provider knows.
type RulesPreview struct {
	// Hash stands for the rules and all that they do; Apply takes it.
	Hash  string
	Rules []loom.IdentityRule
	// Known is how many people the provider knows, of whom Matched get a group.
	Known, Matched int
	// Roles are those that users gain or lose, and Nowhere are users who have none left.
	Roles   []RoleChange
	Nowhere []loom.Account
	// Roleless are groups of the new rules that have no role yet, by name: they let nobody in.
	Roleless []string
	// members are the groups of each user by the new rules, and changed the users for whom the old
	// ones gave others.
	members map[loom.Account][]int64
	changed []loom.Account
}

// PreviewIdentityRules says what rules would do to everybody the provider knows. Errors: Forbidden,
// NotFound, Invalid.
func (a *Accounts) PreviewIdentityRules(ctx context.Context, actor loom.Actor, id string, rules []loom.IdentityRule) (RulesPreview, error) {
	p, err := a.IdentityProvider(ctx, actor, id)
	if err != nil {
		return RulesPreview{}, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (RulesPreview, error) {
		return previewRules(ctx, tx, p, rules)
	})
}

// SetIdentityRules replaces the rules of an identity provider and applies them to everybody it
// knows, if that does just what the preview with this hash said. Errors: Forbidden, NotFound,
// Invalid; Conflict where something moved, to be previewed again.
func (a *Accounts) SetIdentityRules(ctx context.Context, actor loom.Actor, id string, rules []loom.IdentityRule, hash string) ([]loom.IdentityRule, error) {
	var stored []loom.IdentityRule
	err := a.changeIdentityProvider(ctx, actor, id, "update", func(tx *sqlx.Tx, p *loom.IdentityProvider) (before, after map[string]any, err error) {
		preview, err := previewRules(ctx, tx, *p, rules)
		if err != nil {
			return nil, nil, err
		}
		if preview.Hash != hash {
			return nil, nil, loom.NewError(loom.Conflict, "Since the preview the rules, what the provider says of people, or roles have changed. Preview the rules again.")
		}
		was, err := store.IdentityRulesAllTenants(ctx, tx, p.ID)
		if err != nil {
			return nil, nil, err
		}
		if err := store.SetIdentityRulesAllTenants(ctx, tx, p.ID, preview.Rules); err != nil {
			return nil, nil, err
		}
		for _, account := range preview.changed {
			if _, _, err := store.SetMembers(ctx, tx, account.Tenant, account.User, p.Source(), preview.members[account]); err != nil {
				return nil, nil, err
			}
		}
		stored = preview.Rules
		return map[string]any{"id": p.ID, "rules": shownRules(was)}, map[string]any{"id": p.ID, "rules": shownRules(stored)}, nil
	})
	return stored, err
}

func compareAccounts(a, b loom.Account) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.User, b.User))
}

func shownRules(rules []loom.IdentityRule) []map[string]any {
	shown := make([]map[string]any, len(rules))
	for i, r := range rules {
		shown[i] = map[string]any{"conditions": r.Conditions, "group": r.GroupName}
	}
	return shown
}

// placeRules fills in where the groups of rules are. Invalid for groups that are not there, or not
// within reach of the provider.
func placeRules(ctx context.Context, tx *sqlx.Tx, p loom.IdentityProvider, rules []loom.IdentityRule) ([]loom.IdentityRule, error) {
	errs := loom.CheckIdentityRules(rules)
	if len(rules) > loom.MaxIdentityRules {
		return nil, loom.InvalidFields(errs)
	}
	ids := []int64{}
	for _, r := range rules {
		ids = append(ids, r.Group)
	}
	groups, err := store.GroupsByIDAllTenants(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	placed := slices.Clone(rules)
	for i := range placed {
		g, there := groups[placed[i].Group]
		if !there || g.Tenant != p.Tenant && !p.Global() {
			errs = append(errs, loom.FieldError{Field: fmt.Sprintf("rules[%d].group", i), Message: "There is no such group."})
			continue
		}
		placed[i].Tenant, placed[i].GroupName = g.Tenant, g.Name
	}
	return placed, loom.InvalidFields(errs)
}

// groupsBy returns the groups of the rules that matched, by tenant, each once.
func groupsBy(rules []loom.IdentityRule, matched []int) map[loom.TenantID][]int64 {
	groups := map[loom.TenantID][]int64{}
	for _, i := range matched {
		r := rules[i]
		if !slices.Contains(groups[r.Tenant], r.Group) {
			groups[r.Tenant] = append(groups[r.Tenant], r.Group)
		}
	}
	return groups
}

// previewRules works out what rules do to everybody that a provider knows.
func previewRules(ctx context.Context, tx *sqlx.Tx, p loom.IdentityProvider, rules []loom.IdentityRule) (RulesPreview, error) {
	placed, err := placeRules(ctx, tx, p, rules)
	if err != nil {
		return RulesPreview{}, err
	}
	preview := RulesPreview{Rules: placed, members: map[loom.Account][]int64{}}
	named := map[int64]bool{}
	for _, r := range placed {
		named[r.Group] = true
	}
	prepared := loom.NewIdentityRules(placed)
	err = store.WalkIdentitiesAllTenants(ctx, tx, p.ID, func(identity loom.Identity) error {
		matched := prepared.Match(identity.Claims)
		groups := groupsBy(placed, matched)
		preview.Known++
		if len(matched) > 0 {
			preview.Matched++
		}
		for _, account := range identity.Accounts {
			preview.members[account] = groups[account.Tenant]
		}
		return nil
	})
	if err != nil {
		return RulesPreview{}, err
	}
	standings, err := store.StandingsAllTenants(ctx, tx, p.ID)
	if err != nil {
		return RulesPreview{}, err
	}
	for _, s := range standings {
		for group := range s.Groups {
			named[group] = true
		}
	}
	ofGroups, ofUsers, err := store.RolesAllTenants(ctx, tx, p.ID, slices.Sorted(maps.Keys(named)))
	if err != nil {
		return RulesPreview{}, err
	}
	for _, r := range placed {
		if len(ofGroups[r.Group]) == 0 && !slices.Contains(preview.Roleless, r.GroupName) {
			preview.Roleless = append(preview.Roleless, r.GroupName)
		}
	}
	preview.compare(p, standings, ofGroups, ofUsers)
	return preview, preview.seal(ctx, tx, p)
}

// compare finds which roles users gain and lose.
func (r *RulesPreview) compare(p loom.IdentityProvider, standings map[loom.Account]*store.Standing, ofGroups map[int64][]loom.Grant, ofUsers map[loom.Account][]loom.Grant) {
	type change struct {
		loom.Grant
		tenant loom.TenantID
		gained bool
	}
	users := map[change][]loom.UserID{}
	for _, account := range slices.SortedFunc(maps.Keys(r.members), compareAccounts) {
		s := standings[account]
		if s == nil {
			continue
		}
		before, after := map[loom.Grant]bool{}, map[loom.Grant]bool{}
		add := func(to map[loom.Grant]bool, grants []loom.Grant) {
			for _, g := range grants {
				to[g] = true
			}
		}
		if own, ok := loom.OwnGrant(s.Role); ok {
			before[own], after[own] = true, true
		}
		add(before, ofUsers[account])
		add(after, ofUsers[account])
		var gave []int64
		for group, sources := range s.Groups {
			if slices.Contains(sources, p.Source()) {
				gave = append(gave, group)
			}
			add(before, ofGroups[group])
			if slices.ContainsFunc(sources, func(source loom.MemberSource) bool { return source != p.Source() }) {
				add(after, ofGroups[group])
			}
		}
		for _, group := range r.members[account] {
			add(after, ofGroups[group])
		}
		if !slices.Equal(slices.Sorted(slices.Values(gave)), slices.Sorted(slices.Values(r.members[account]))) {
			r.changed = append(r.changed, account)
		}
		for g := range before {
			if !after[g] {
				users[change{g, account.Tenant, false}] = append(users[change{g, account.Tenant, false}], account.User)
			}
		}
		for g := range after {
			if !before[g] {
				users[change{g, account.Tenant, true}] = append(users[change{g, account.Tenant, true}], account.User)
			}
		}
		if len(before) > 0 && len(after) == 0 {
			r.Nowhere = append(r.Nowhere, account)
		}
	}
	for c, of := range users {
		r.Roles = append(r.Roles, RoleChange{Grant: c.Grant, Tenant: c.tenant, Gained: c.gained, Users: of})
	}
	slices.SortFunc(r.Roles, func(a, b RoleChange) int {
		gained := func(c RoleChange) int {
			if c.Gained {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(gained(a), gained(b)), -cmp.Compare(slices.Index(loom.Roles, a.Role), slices.Index(loom.Roles, b.Role)),
			cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Template, b.Template), cmp.Compare(a.Cluster, b.Cluster))
	})
}

// seal makes the hash: of the rules as they are, of those to come and of everything that they do.
func (r *RulesPreview) seal(ctx context.Context, tx *sqlx.Tx, p loom.IdentityProvider) error {
	was, err := store.IdentityRulesAllTenants(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	type member struct {
		Account loom.Account
		Groups  []int64
	}
	var members []member
	for _, account := range slices.SortedFunc(maps.Keys(r.members), compareAccounts) {
		members = append(members, member{account, r.members[account]})
	}
	text, err := json.Marshal([]any{p.ID, was, r.Rules, r.Known, r.Matched, r.Roles, r.Nowhere, members})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	r.Hash = hex.EncodeToString(sum[:])
	return nil
}
