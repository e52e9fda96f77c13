package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

type groupRow struct {
	ID          int64     `db:"id"`
	TenantID    string    `db:"tenant_id"`
	Name        string    `db:"name"`
	Description string    `db:"description"`
	CreatedAt   time.Time `db:"created_at"`
	Members     int       `db:"members"`
	Bindings    int       `db:"bindings"`
}

func (r groupRow) group() loom.Group {
	return loom.Group{ID: r.ID, Tenant: loom.TenantID(r.TenantID), Name: r.Name, Description: r.Description, Created: r.CreatedAt, Members: r.Members, Bindings: r.Bindings}
}

const groupColumns = `g.id, g.tenant_id, g.name, g.description, g.created_at,
	(SELECT count(DISTINCT m.user_id) FROM group_members m WHERE m.tenant_id = g.tenant_id AND m.group_id = g.id) AS members,
	(SELECT count(*) FROM role_bindings b WHERE b.tenant_id = g.tenant_id AND b.group_id = g.id) AS bindings`

var groupKeyset = keyset{
	columns: groupColumns, from: "groups g", id: "g.id", idKind: "bigint",
	sorts: map[string]sortColumn{"name": {`g.name COLLATE "C"`, "g.name", "text"}, "createTime": byCreation("g")},
}

// GroupSorts lists what groups can be sorted by, the default first.
var GroupSorts = []string{"name", "-name", "-createTime", "createTime"}

// GroupPage reads a page of the groups of a tenant whose name or description has all words.
// Invalid for an unknown sort and for a cursor of another list.
func GroupPage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, words string, p loom.Page) (groups []loom.Group, next, prev string, err error) {
	var b binder
	conditions, err := allWords(&b, words, "g.name", "g.description")
	if err != nil {
		return nil, "", "", err
	}
	type row struct {
		groupRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, groupKeyset, append([]string{"g.tenant_id = " + b.add(tenant)}, conditions...), &b, words, p, GroupSorts...)
	for _, r := range rows {
		groups = append(groups, r.group())
	}
	return groups, next, prev, err
}

// Group reads a group of a tenant. NotFound.
func Group(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) (loom.Group, error) {
	return oneGroup(ctx, q, `SELECT `+groupColumns+` FROM groups g WHERE g.tenant_id = $1 AND g.id = $2`, tenant, id)
}

// LockGroup reads a group and keeps others from changing it, its members and its bindings until
// the transaction ends. NotFound.
func LockGroup(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64) (loom.Group, error) {
	return oneGroup(ctx, tx, `SELECT `+groupColumns+` FROM groups g WHERE g.tenant_id = $1 AND g.id = $2 FOR UPDATE OF g`, tenant, id)
}

func oneGroup(ctx context.Context, q sqlx.ExtContext, query string, tenant loom.TenantID, id int64) (loom.Group, error) {
	var row groupRow
	err := sqlx.GetContext(ctx, q, &row, query, tenant, id)
	if errors.Is(err, sql.ErrNoRows) {
		return loom.Group{}, &loom.Error{Kind: loom.NotFound, Message: fmt.Sprintf("There is no group %d.", id), Err: err}
	}
	return row.group(), wrap(err, "read group %d", id)
}

// CountGroups counts the groups of a tenant; to rely on it, hold LockTenant.
func CountGroups(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `SELECT count(*) FROM groups WHERE tenant_id = $1`, tenant)
	return n, wrap(err, "count groups")
}

// InsertGroup makes a group. Conflict where the name is in use.
func InsertGroup(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, g loom.Group) (loom.Group, error) {
	var row groupRow
	err := tx.GetContext(ctx, &row, `INSERT INTO groups (tenant_id, name, description) VALUES ($1, $2, $3) RETURNING id, created_at`, tenant, g.Name, g.Description)
	g.ID, g.Tenant, g.Created = row.ID, tenant, row.CreatedAt
	return g, wrap(err, "insert a group")
}

// UpdateGroup stores the name and the description of a locked group. Conflict where the name is in use.
func UpdateGroup(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, g loom.Group) error {
	_, err := tx.ExecContext(ctx, `UPDATE groups SET name = $3, description = $4 WHERE tenant_id = $1 AND id = $2`, tenant, g.ID, g.Name, g.Description)
	return wrap(err, "update group %d", g.ID)
}

// DeleteGroup removes a group with its memberships and bindings.
func DeleteGroup(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM groups WHERE tenant_id = $1 AND id = $2`, tenant, id)
	return wrap(err, "delete group %d", id)
}

// MembersOf reads the members of a group by user id, one more than limit at most, from after on.
func MembersOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, group int64, after loom.UserID, limit int) ([]loom.Member, error) {
	var rows []struct {
		UserID      string    `db:"user_id"`
		DisplayName string    `db:"display_name"`
		Source      string    `db:"source"`
		AddedAt     time.Time `db:"added_at"`
		AddedBy     string    `db:"added_by"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `
SELECT DISTINCT ON (m.user_id COLLATE "C") m.user_id, u.display_name, m.source, m.added_at, m.added_by
FROM group_members m JOIN users u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
WHERE m.tenant_id = $1 AND m.group_id = $2 AND m.user_id COLLATE "C" > $3 ORDER BY m.user_id COLLATE "C", m.source LIMIT $4`, tenant, group, after, limit+1)
	members := make([]loom.Member, len(rows))
	for i, r := range rows {
		members[i] = loom.Member{User: loom.UserID(r.UserID), DisplayName: r.DisplayName, Source: loom.MemberSource(r.Source), Added: r.AddedAt, AddedBy: loom.UserID(r.AddedBy)}
	}
	return members, wrap(err, "list the members of group %d", group)
}

// GroupsOf reads the groups that a user belongs to, by name.
func GroupsOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID) ([]loom.Group, error) {
	var rows []groupRow
	err := sqlx.SelectContext(ctx, q, &rows, `SELECT `+groupColumns+` FROM groups g
WHERE g.tenant_id = $1 AND g.id IN (SELECT group_id FROM group_members WHERE tenant_id = $1 AND user_id = $2) ORDER BY lower(g.name)`, tenant, user)
	groups := make([]loom.Group, len(rows))
	for i, r := range rows {
		groups[i] = r.group()
	}
	return groups, wrap(err, "list the groups of %s", user)
}

// AddMember puts a user into a group and reports whether he was not in it by this source before.
func AddMember(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, group int64, user loom.UserID, source loom.MemberSource, by loom.UserID) (bool, error) {
	result, err := tx.ExecContext(ctx, `INSERT INTO group_members (tenant_id, group_id, user_id, source, added_by) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`, tenant, group, user, source, by)
	if err != nil {
		return false, wrap(err, "add %s to group %d", user, group)
	}
	n, err := result.RowsAffected()
	return n > 0, wrap(err, "add %s to group %d", user, group)
}

// RemoveMember takes a user out of a group, as far as a source put him there, and reports
// whether it had.
func RemoveMember(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, group int64, user loom.UserID, source loom.MemberSource) (bool, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM group_members WHERE tenant_id = $1 AND group_id = $2 AND user_id = $3 AND source = $4`, tenant, group, user, source)
	if err != nil {
		return false, wrap(err, "take %s out of group %d", user, group)
	}
	n, err := result.RowsAffected()
	return n > 0, wrap(err, "take %s out of group %d", user, group)
}
