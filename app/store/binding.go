package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// grantsOfUser are the roles of a user, whom the statement calls u, by bindings of his own and of
// his groups, each once and always in the same order.
const grantsOfUser = `(SELECT coalesce(json_agg(json_build_array(b.role, coalesce(b.template, ''), coalesce(b.cluster_id, 0)) ORDER BY b.role, b.template, b.cluster_id), '[]') FROM (
	SELECT role, template, cluster_id FROM role_bindings WHERE tenant_id = u.tenant_id AND user_id = u.id
	UNION SELECT r.role, r.template, r.cluster_id FROM group_members m JOIN role_bindings r ON r.tenant_id = m.tenant_id AND r.group_id = m.group_id
	WHERE m.tenant_id = u.tenant_id AND m.user_id = u.id) b)`

// grantsRow are grants as grantsOfUser has them.
type grantsRow []loom.Grant

// Scan reads the JSON of grantsOfUser.
func (g *grantsRow) Scan(value any) error {
	text, ok := value.([]byte)
	if !ok {
		return fmt.Errorf("grants are %T, not JSON", value)
	}
	var rows [][3]json.RawMessage
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("read grants: %w", err)
	}
	*g = nil
	for _, r := range rows {
		var grant loom.Grant
		var cluster int64
		if err := errors.Join(json.Unmarshal(r[0], &grant.Role), json.Unmarshal(r[1], &grant.Template), json.Unmarshal(r[2], &cluster)); err != nil {
			return fmt.Errorf("read a grant: %w", err)
		}
		grant.Cluster = loom.ClusterID(cluster)
		*g = append(*g, grant)
	}
	return nil
}

type bindingRow struct {
	ID          int64          `db:"id"`
	TenantID    string         `db:"tenant_id"`
	UserID      sql.NullString `db:"user_id"`
	GroupID     sql.NullInt64  `db:"group_id"`
	GroupName   sql.NullString `db:"group_name"`
	Role        string         `db:"role"`
	Template    sql.NullString `db:"template"`
	ClusterID   sql.NullInt64  `db:"cluster_id"`
	ClusterName sql.NullString `db:"cluster_name"`
	CreatedAt   time.Time      `db:"created_at"`
	CreatedBy   string         `db:"created_by"`
}

func (r bindingRow) binding() loom.Binding {
	return loom.Binding{
		ID: r.ID, Tenant: loom.TenantID(r.TenantID), User: loom.UserID(r.UserID.String), Group: r.GroupID.Int64, GroupName: r.GroupName.String,
		Grant:       loom.Grant{Role: loom.Role(r.Role), Template: r.Template.String, Cluster: loom.ClusterID(r.ClusterID.Int64)},
		ClusterName: r.ClusterName.String, Created: r.CreatedAt, CreatedBy: loom.UserID(r.CreatedBy),
	}
}

// BindingFilter narrows the bindings of a tenant; empty fields do not filter.
type BindingFilter struct {
	ID    int64
	User  loom.UserID
	Group int64
	// Holder has the roles, given to him or to a group of his.
	Holder   loom.UserID
	Role     loom.Role
	Template string
	Cluster  loom.ClusterID
	// Place is where roles hold, "" for anywhere.
	Place loom.Place
}

const bindingColumns = `b.id, b.tenant_id, b.user_id, b.group_id, g.name AS group_name, b.role, b.template, b.cluster_id, c.name AS cluster_name, b.created_at, b.created_by`

var bindingKeyset = keyset{
	columns: bindingColumns, from: "role_bindings b LEFT JOIN groups g ON g.tenant_id = b.tenant_id AND g.id = b.group_id LEFT JOIN clusters c ON c.id = b.cluster_id", id: "b.id", idKind: "bigint",
	sorts: map[string]sortColumn{"createTime": byCreation("b")},
}

// BindingSorts lists what bindings can be sorted by, the default first.
var BindingSorts = []string{"-createTime", "createTime"}

func (f *BindingFilter) where(b *binder, tenant loom.TenantID) []string {
	conditions := []string{"b.tenant_id = " + b.add(tenant)}
	add := func(is bool, text string, value any) {
		if is {
			conditions = append(conditions, text+b.add(value))
		}
	}
	add(f.ID != 0, "b.id = ", f.ID)
	add(f.User != "", "b.user_id = ", f.User)
	add(f.Group != 0, "b.group_id = ", f.Group)
	if f.Holder != "" {
		holder := b.add(f.Holder)
		conditions = append(conditions, "(b.user_id = "+holder+" OR b.group_id IN (SELECT m.group_id FROM group_members m WHERE m.tenant_id = b.tenant_id AND m.user_id = "+holder+"))")
	}
	add(f.Role != "", "b.role = ", f.Role)
	add(f.Template != "", "b.template = ", f.Template)
	add(f.Cluster != 0, "b.cluster_id = ", int64(f.Cluster))
	switch f.Place {
	case loom.PlaceTenant:
		conditions = append(conditions, "num_nonnulls(b.template, b.cluster_id) = 0")
	case loom.PlaceTemplate:
		conditions = append(conditions, "b.template IS NOT NULL")
	case loom.PlaceCluster:
		conditions = append(conditions, "b.cluster_id IS NOT NULL")
	}
	return conditions
}

// BindingPage reads a page of the bindings of a tenant. Invalid for an unknown sort and for a
// cursor of another list.
func BindingPage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f BindingFilter, p loom.Page) (bindings []loom.Binding, next, prev string, err error) {
	var b binder
	type row struct {
		bindingRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, bindingKeyset, f.where(&b, tenant), &b, f, p, BindingSorts...)
	for _, r := range rows {
		bindings = append(bindings, r.binding())
	}
	return bindings, next, prev, err
}

// Bindings reads all bindings of a tenant that a filter leaves, users before groups, by name.
func Bindings(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f BindingFilter) ([]loom.Binding, error) {
	var b binder
	query := "SELECT " + bindingColumns + " FROM " + bindingKeyset.from + " WHERE " + strings.Join(f.where(&b, tenant), " AND ") + ` ORDER BY b.user_id, lower(g.name), b.role, b.id`
	var rows []bindingRow
	if err := sqlx.SelectContext(ctx, q, &rows, query, b.values...); err != nil {
		return nil, wrap(err, "list bindings")
	}
	bindings := make([]loom.Binding, len(rows))
	for i, r := range rows {
		bindings[i] = r.binding()
	}
	return bindings, nil
}

// Binding reads a binding of a tenant. NotFound.
func Binding(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) (loom.Binding, error) {
	found, err := Bindings(ctx, q, tenant, BindingFilter{ID: id})
	if err == nil && (id == 0 || len(found) == 0) {
		err = loom.NewError(loom.NotFound, "There is no binding %d.", id)
	}
	if err != nil {
		return loom.Binding{}, err
	}
	return found[0], nil
}

const insertBinding = `
INSERT INTO role_bindings (tenant_id, user_id, group_id, role, template, cluster_id, created_by)
VALUES ($1, nullif($2, ''), nullif($3::bigint, 0), $4, nullif($5, ''), nullif($6::bigint, 0), $7) RETURNING id`

// InsertBinding stores a binding and returns its id. Conflict where there is the same one.
func InsertBinding(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, b loom.Binding) (int64, error) {
	var id int64
	err := tx.GetContext(ctx, &id, insertBinding, tenant, b.User, b.Group, b.Role, b.Template, int64(b.Cluster), b.CreatedBy)
	return id, wrap(err, "insert a binding")
}

// CountBindings counts the bindings below the tenant that a user, or a group, has.
func CountBindings(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, group int64) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `SELECT count(*) FROM role_bindings WHERE tenant_id = $1 AND (user_id = nullif($2, '') OR group_id = nullif($3::bigint, 0)) AND num_nonnulls(template, cluster_id) > 0`, tenant, user, group)
	return n, wrap(err, "count bindings")
}

// DeleteBinding removes a binding and reports whether there was one.
func DeleteBinding(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64) (bool, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM role_bindings WHERE tenant_id = $1 AND id = $2`, tenant, id)
	if err != nil {
		return false, wrap(err, "delete binding %d", id)
	}
	n, err := result.RowsAffected()
	return n > 0, wrap(err, "delete binding %d", id)
}

// DropBindingsOfTemplates removes the bindings of templates that have no version any longer.
func DropBindingsOfTemplates(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	_, err := tx.ExecContext(ctx, `
DELETE FROM role_bindings b WHERE b.tenant_id = $1 AND b.template IS NOT NULL
	AND NOT EXISTS (SELECT FROM catalog_versions v WHERE v.tenant_id = $1 AND v.kind = 'clustertemplates' AND v.name = b.template)`, tenant)
	return wrap(err, "delete the bindings of deleted templates")
}

// RevealedNodes reads the host names of the nodes of a cluster whose sign-in, or the key of all,
// was revealed to a user or to members of a group.
func RevealedNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, user loom.UserID, group int64) ([]string, error) {
	names := []string{}
	err := sqlx.SelectContext(ctx, q, &names, `
SELECT n.hostname FROM nodes n WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND n.state <> 'deleted' AND EXISTS (
	SELECT FROM audit a WHERE a.tenant_id = $1 AND a.verb = 'reveal' AND a.result = 'ok'
	AND (a.kind = 'cluster' AND a.object = $3 OR a.kind = 'node' AND a.object = $3 || '/' || n.id::text)
	AND (a.actor = $4 OR a.actor IN (SELECT user_id FROM group_members WHERE tenant_id = $1 AND group_id = $5)))
ORDER BY n.number`, tenant, int64(cluster), cluster.String(), user, group)
	return names, wrap(err, "list revealed nodes of cluster %s", cluster)
}
