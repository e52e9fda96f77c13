package clusters

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

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
