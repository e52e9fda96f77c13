package planner

import "loom/app/loom"

// TaskDependencies is what one task waits for.
type TaskDependencies struct {
	// DependsOn are the numbers of tasks it waits for one by one, ascending.
	DependsOn []int `json:"dependsOn"`
	// Behind are the gates it waits for: written out as numbers, these would be
	// every task of one group for every task of another.
	Behind []GateDependency `json:"behind"`
}

// GateDependency is a gate a task waits for: "all 3 START of zookeeper-server".
type GateDependency struct {
	Service string          `json:"service"`
	Action  loom.TaskAction `json:"action"`
	// Count is the number of tasks the gate joins.
	Count int `json:"count"`
}

// Dependencies returns what each task of a plan waits for; entry i belongs to
// task i+1. Lists are empty, never nil. Gates come in the order of the plan.
func Dependencies(plan loom.Plan) []TaskDependencies {
	n := len(plan.Tasks)
	joined := make([]int, len(plan.Gates))
	orders := make([]TaskDependencies, n)
	for i := range orders {
		orders[i] = TaskDependencies{DependsOn: []int{}, Behind: []GateDependency{}}
	}
	for _, e := range plan.Edges {
		if e.To > n {
			joined[e.To-n-1]++
		}
	}
	for _, e := range plan.Edges {
		if e.To > n {
			continue
		}
		o := &orders[e.To-1]
		if e.From <= n {
			o.DependsOn = append(o.DependsOn, e.From)
			continue
		}
		g := e.From - n - 1
		o.Behind = append(o.Behind, GateDependency{plan.Gates[g].Service, plan.Gates[g].Action, joined[g]})
	}
	return orders
}
