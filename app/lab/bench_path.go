package lab

import (
	"slices"
	"time"

	"loom/app/loom"
)

// vertexTimes are begin and end of a task.
type vertexTimes struct{ started, ended time.Time }

// before returns, for each task by number, the tasks that had to end first: along
// the edges, with gates taken out, and the task that the node ran before.
func before(plan loom.Plan, times map[int]vertexTimes) map[int][]int {
	into := map[int][]int{}
	for _, e := range plan.Edges {
		into[e.To] = append(into[e.To], e.From)
	}
	earlier := map[int][]int{}
	byNode := map[loom.NodeID][]int{}
	for _, t := range plan.Tasks {
		for _, from := range into[t.Number] {
			if from <= len(plan.Tasks) {
				earlier[t.Number] = append(earlier[t.Number], from)
			} else {
				earlier[t.Number] = append(earlier[t.Number], into[from]...)
			}
		}
		byNode[t.Node] = append(byNode[t.Node], t.Number)
	}
	for _, numbers := range byNode {
		slices.SortFunc(numbers, func(a, b int) int { return times[a].started.Compare(times[b].started) })
		for i := 1; i < len(numbers); i++ {
			earlier[numbers[i]] = append(earlier[numbers[i]], numbers[i-1])
		}
	}
	return earlier
}

// last returns the one of some tasks that ended last; 0 for none.
func last(numbers []int, times map[int]vertexTimes) int {
	found := 0
	for _, n := range numbers {
		if found == 0 || times[n].ended.After(times[found].ended) {
			found = n
		}
	}
	return found
}

// criticalPath returns the chain of tasks that decided when the plan ended, from
// its first to its last: each is the one that its successor waited for.
func criticalPath(plan loom.Plan, times map[int]vertexTimes) []loom.PlanTask {
	earlier := before(plan, times)
	var all []int
	for _, t := range plan.Tasks {
		all = append(all, t.Number)
	}
	var path []loom.PlanTask
	for n := last(all, times); n != 0; n = last(earlier[n], times) {
		path = append(path, plan.Tasks[n-1])
	}
	slices.Reverse(path)
	return path
}

// percentile of sorted durations; 0 for none.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
