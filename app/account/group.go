package account

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// maxGroups is how many groups a tenant may have, maxGroupsOf how many a user may be in: each
// request reads their roles. Rules of identity providers, which are few, may add to those by hand.
const (
	maxGroups   = 2000
	maxGroupsOf = 500
)

// GroupInput is a new group, or what to change of one: nil leaves it.
type GroupInput struct {
	Name, Description *string
}

func (in *GroupInput) apply(g *loom.Group) []loom.FieldError {
	if in.Name != nil {
		g.Name = strings.TrimSpace(*in.Name)
	}
	if in.Description != nil {
		g.Description = strings.TrimSpace(*in.Description)
	}
	var errs []loom.FieldError
	if n := utf8.RuneCountInString(g.Name); n < 1 || n > 100 || strings.ContainsFunc(g.Name, unseen) {
		errs = append(errs, loom.FieldError{Field: "name", Message: "Enter a name of 1–100 characters, without control characters."})
	}
	if utf8.RuneCountInString(g.Description) > maxUserText || strings.ContainsFunc(g.Description, unicode.IsControl) {
		errs = append(errs, loom.FieldError{Field: "description", Message: "Enter at most 200 characters, without control characters."})
	}
	return errs
}

func shownGroup(g loom.Group) map[string]any {
	return map[string]any{"id": g.ID, "name": g.Name, "description": g.Description}
}

// GroupList is a page of groups. Next and Prev are cursors, "" where there is no more.
type GroupList struct {
	Items      []loom.Group
	Next, Prev string
}

// ListGroups lists the groups of the actor's tenant whose name or description has all words.
// Sorts: "name" (default) and "createTime", "-" before it for descending. Errors: Forbidden,
// Invalid.
func (a *Accounts) ListGroups(ctx context.Context, actor loom.Actor, words string, p loom.Page) (GroupList, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return GroupList{}, err
	}
	items, next, prev, err := store.GroupPage(ctx, a.db, actor.Tenant, words, p)
	return GroupList{items, next, prev}, err
}

// Group returns a group of the actor's tenant. Errors: Forbidden, NotFound.
func (a *Accounts) Group(ctx context.Context, actor loom.Actor, id int64) (loom.Group, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return loom.Group{}, err
	}
	return store.Group(ctx, a.db, actor.Tenant, id)
}

// MemberList is a page of the members of a group; Next is the user after whom the next one
// begins, "" where there is no more.
type MemberList struct {
	Items []loom.Member
	Next  loom.UserID
}

// maxMembersPage is how many members a page has.
const maxMembersPage = 100

// Members lists the members of a group by user id, those after one. Errors: Forbidden, NotFound.
func (a *Accounts) Members(ctx context.Context, actor loom.Actor, id int64, after loom.UserID) (MemberList, error) {
	if _, err := a.Group(ctx, actor, id); err != nil {
		return MemberList{}, err
	}
	items, err := store.MembersOf(ctx, a.db, actor.Tenant, id, loom.UserID(clean(string(after))), maxMembersPage)
	list := MemberList{Items: items}
	if len(items) > maxMembersPage {
		list.Items, list.Next = items[:maxMembersPage], items[maxMembersPage-1].User
	}
	return list, err
}

// GroupsOf returns the groups of a user by name: one's own, or those of anyone for an
// administrator. NotFound.
func (a *Accounts) GroupsOf(ctx context.Context, actor loom.Actor, user loom.UserID) ([]loom.Group, error) {
	if err := a.maySeeUser(actor, user); err != nil {
		return nil, err
	}
	return store.GroupsOf(ctx, a.db, actor.Tenant, user)
}

// CreateGroup makes a group without members. Errors: Forbidden, Invalid, Conflict for a name in
// use, Exhausted.
func (a *Accounts) CreateGroup(ctx context.Context, actor loom.Actor, in GroupInput) (loom.Group, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.Group{}, err
	}
	var g loom.Group
	if err := loom.InvalidFields(in.apply(&g)); err != nil {
		return loom.Group{}, err
	}
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Group, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return loom.Group{}, err
		}
		if err := store.StillActs(ctx, tx, actor); err != nil {
			return loom.Group{}, err
		}
		n, err := store.CountGroups(ctx, tx, actor.Tenant)
		if err != nil {
			return loom.Group{}, err
		}
		if n >= maxGroups {
			return loom.Group{}, loom.NewError(loom.Exhausted, "The tenant has %d groups, the most there are; delete one that is not used.", n)
		}
		g, err := store.InsertGroup(ctx, tx, actor.Tenant, g)
		if err != nil {
			return loom.Group{}, conflictAt(err, "name")
		}
		if err := record(ctx, tx, actor, "create", "group", itoa(int(g.ID)), nil, shownGroup(g)); err != nil {
			return loom.Group{}, err
		}
		return g, store.InsertEvents(ctx, tx, groupEvent(actor.Tenant))
	})
}

// groupEvent tells pages of the tenant that its groups changed.
func groupEvent(tenant loom.TenantID) loom.Event {
	return loom.Event{Tenant: tenant, Topic: "tenant", IDs: []string{"groups"}}
}

// changeGroup does something to a group under its lock, if the actor may, and records it.
func (a *Accounts) changeGroup(ctx context.Context, actor loom.Actor, id int64, verb string, change func(tx *sqlx.Tx, g *loom.Group) (before, after map[string]any, err error)) error {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return err
		}
		g, err := store.LockGroup(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		before, after, err := change(tx, &g)
		if err != nil || before == nil && after == nil {
			return err
		}
		if err := record(ctx, tx, actor, verb, "group", itoa(int(id)), before, after); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, groupEvent(actor.Tenant))
	})
}

// UpdateGroup changes name and description of a group. Errors: Forbidden, NotFound, Invalid,
// Conflict for a name in use.
func (a *Accounts) UpdateGroup(ctx context.Context, actor loom.Actor, id int64, in GroupInput) (loom.Group, error) {
	var changed loom.Group
	err := a.changeGroup(ctx, actor, id, "update", func(tx *sqlx.Tx, g *loom.Group) (before, after map[string]any, err error) {
		before = shownGroup(*g)
		if err := loom.InvalidFields(in.apply(g)); err != nil {
			return nil, nil, err
		}
		after, changed = shownGroup(*g), *g
		if err := store.UpdateGroup(ctx, tx, actor.Tenant, *g); err != nil {
			return nil, nil, conflictAt(err, "name")
		}
		return before, after, nil
	})
	return changed, err
}

// DeleteGroup removes a group: its members lose at once what it gave them. Errors: Forbidden,
// NotFound; Conflict while rules of identity providers name it.
func (a *Accounts) DeleteGroup(ctx context.Context, actor loom.Actor, id int64) error {
	return a.changeGroup(ctx, actor, id, "delete", func(tx *sqlx.Tx, g *loom.Group) (before, after map[string]any, err error) {
		rules, err := store.RulesOfGroup(ctx, tx, actor.Tenant, id)
		if err == nil && len(rules) > 0 {
			err = loom.NewError(loom.Conflict, "Rules of “%s” make people members of this group; change those rules first.", strings.Join(rules, "”, “"))
		}
		if err != nil {
			return nil, nil, err
		}
		before = shownGroup(*g)
		before["members"], before["bindings"] = g.Members, g.Bindings
		return before, nil, store.DeleteGroup(ctx, tx, actor.Tenant, id)
	})
}

// AddMember puts a user into a group; one who is in it already stays. Errors: Forbidden,
// NotFound, Invalid for a user who is not there or disabled, Exhausted for one in too many groups.
func (a *Accounts) AddMember(ctx context.Context, actor loom.Actor, id int64, user loom.UserID) error {
	return a.changeGroup(ctx, actor, id, "update", func(tx *sqlx.Tx, g *loom.Group) (before, after map[string]any, err error) {
		if err := knownUser(ctx, tx, actor.Tenant, "user", user); err != nil {
			return nil, nil, err
		}
		of, err := store.GroupsOf(ctx, tx, actor.Tenant, user)
		if err != nil {
			return nil, nil, err
		}
		if len(of) >= maxGroupsOf && !slices.ContainsFunc(of, func(g loom.Group) bool { return g.ID == id }) {
			return nil, nil, loom.NewError(loom.Exhausted, "“%s” is in %d groups, the most there are; remove the user from one first.", user, len(of))
		}
		added, err := store.AddMember(ctx, tx, actor.Tenant, id, user, loom.MemberByHand, actor.User)
		if err != nil || !added {
			return nil, nil, err
		}
		return map[string]any{"name": g.Name}, map[string]any{"name": g.Name, "added": user}, nil
	})
}

// RemoveMember takes a user out of a group, who loses at once what it gave him. Errors:
// Forbidden; NotFound where he was not added by hand.
func (a *Accounts) RemoveMember(ctx context.Context, actor loom.Actor, id int64, user loom.UserID) error {
	return a.changeGroup(ctx, actor, id, "update", func(tx *sqlx.Tx, g *loom.Group) (before, after map[string]any, err error) {
		removed, err := store.RemoveMember(ctx, tx, actor.Tenant, id, loom.UserID(clean(string(user))), loom.MemberByHand)
		if err == nil && !removed {
			err = loom.NewError(loom.NotFound, "The user “%.255s” was not added to the group “%s” by hand.", user, g.Name)
		}
		return map[string]any{"name": g.Name}, map[string]any{"name": g.Name, "removed": user}, err
	})
}

// knownUser returns an error about a field unless there is such a user who can sign in. A disabled
// one gets the same message: users cannot find out who else there is.
func knownUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, field string, id loom.UserID) error {
	none := loom.InvalidFields([]loom.FieldError{{Field: field, Message: "There is no user with this id who can sign in."}})
	if id == "" || clean(string(id)) != string(id) {
		return none
	}
	user, err := store.User(ctx, tx, tenant, id) // the row that names him keeps him from being removed
	if isNotFound(err) || err == nil && user.Disabled {
		return none
	}
	return err
}
