package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// building is what a preview promises of a provider: its name, its type and the fields
// that decide what is built and where. How it is signed in to may change until then.
type building struct {
	loom.Base
	Type   string            `json:"providertype"`
	Fields map[string]string `json:"fields"`
}

// buildingOf reads the type of a provider for it; a type that is gone knows no field.
func buildingOf(ctx context.Context, q sqlx.ExtContext, p loom.Provider) (building, loom.PluginType, error) {
	t, err := store.ProviderType(ctx, q, p.Type)
	if err != nil && !isNotFound(err) {
		return building{}, t, err
	}
	return newBuilding(t, p), t, nil
}

func newBuilding(t loom.PluginType, p loom.Provider) building {
	b := building{Base: p.Base, Type: p.Type, Fields: t.Building(p.Fields)}
	b.Version = 0
	return b
}

// stillBuilds returns *stale unless a provider builds what a preview promised.
func (b building) stillBuilds(ctx context.Context, q sqlx.ExtContext, p loom.Provider) error {
	if p.Type == "" {
		return &stale{[]string{fmt.Sprintf("The provider “%s” is gone.", b.Name)}}
	}
	now, t, err := buildingOf(ctx, q, p)
	if err != nil {
		return err
	}
	if now.Type != b.Type {
		return &stale{[]string{fmt.Sprintf("The provider “%s” is of another type now.", b.Name)}}
	}
	var moved []string
	for _, name := range slices.Sorted(maps.Keys(now.Fields)) {
		if b.Fields[name] != now.Fields[name] {
			moved = append(moved, "“"+t.Word(name)+"”")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Fields)) {
		if _, there := now.Fields[name]; !there {
			moved = append(moved, "“"+t.Word(name)+"”")
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return &stale{[]string{fmt.Sprintf("The provider “%s” makes other machines now: %s changed.", b.Name, strings.Join(moved, ", "))}}
}

// presentProvider reads a provider as it is; one that is gone has nothing but its name.
func presentProvider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, name string) (loom.Provider, error) {
	p, err := store.Provider(ctx, q, tenant, name)
	if isNotFound(err) {
		return loom.Provider{Base: loom.Base{Name: name}}, nil
	}
	return p, err
}

// readProvider gives the change of a stored preview its provider as it is now.
func (u *Clusters) readProvider(ctx context.Context, actor loom.Actor, c *change) error {
	if c.Kind == loom.ChangeCreate {
		present, err := presentProvider(ctx, u.db, actor.Tenant, c.Building.Name)
		c.Provider = withFields(present, c.Input.Create.ProviderFields)
		return err
	}
	cluster, err := store.ClusterByID(ctx, u.db, actor.Tenant, c.Cluster)
	c.Provider = cluster.Provider
	return err
}

// permitted refuses a plan that makes machines with a provider that the tenant may not
// use. What works on machines that are there, and deletes them, is always permitted.
func permitted(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, p loom.Provider, plan loom.Plan) error {
	if !makesMachines(plan) {
		return nil
	}
	may, err := store.Permits(ctx, q, tenant)
	if err != nil {
		return err
	}
	return may.Refusal("provider", p)
}

func makesMachines(plan loom.Plan) bool {
	return slices.ContainsFunc(plan.Tasks, func(t loom.PlanTask) bool { return t.Action == loom.ActionCreate })
}
