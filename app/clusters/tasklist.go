package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// OperationListInput asks for a page of operations, sorted by -number or number;
// empty fields do not filter.
type OperationListInput struct {
	loom.Page
	Statuses []loom.OperationStatus
	Actions  []loom.ClusterAction
}

// TaskListInput asks for a page of tasks, sorted by number or -number; empty fields
// do not filter.
type TaskListInput struct {
	loom.Page
	Statuses []loom.TaskStatus
	Node     loom.NodeID
	Services []string
	Actions  []loom.TaskAction
	// Level is that of a stage, 0 for all.
	Level int
}

// Listed is a page of a list; Next and Prev are cursors, empty at the ends.
type Listed[T any] struct {
	Items      []T
	Next, Prev string
}

// OperationPage lists operations of a cluster. Invalid for a wrong sort, limit,
// filter or cursor.
func (u *Clusters) OperationPage(ctx context.Context, actor loom.Actor, id loom.ClusterID, in OperationListInput) (Listed[loom.Operation], error) {
	var none Listed[loom.Operation]
	if err := u.see(ctx, actor, id); err != nil {
		return none, err
	}
	errs := append(unknown("status", in.Statuses, loom.OperationStatuses), unknown("action", in.Actions, loom.ClusterActions)...)
	if err := loom.InvalidFields(errs); err != nil {
		return none, err
	}
	filter := store.OperationFilter{Statuses: in.Statuses, Actions: in.Actions}
	mark := fmt.Sprint(id, filter)
	counted, known := knownOperation(ctx, actor.Tenant, id)
	if known {
		filter.Uncounted = counted.Ref.Number
	}
	return pageByNumber(in.Page, mark, []string{"-number", "number"}, func(o loom.Operation) int { return o.Ref.Number },
		func(r store.NumberRange) ([]loom.Operation, error) {
			operations, err := store.OperationsInRange(ctx, u.kept, actor.Tenant, id, filter, r)
			for i := range operations {
				if known && operations[i].Ref == counted.Ref {
					operations[i].Tasks, operations[i].Again = counted.Tasks, counted.Again
				}
			}
			return operations, err
		})
}

// TaskPage lists tasks of an operation with what they wait for; it reads no more of
// the plan than the page. Attempts and Next are left out. Invalid for a wrong sort,
// limit, filter or cursor.
func (u *Clusters) TaskPage(ctx context.Context, actor loom.Actor, ref loom.OperationRef, in TaskListInput) (Listed[TaskView], error) {
	var none Listed[TaskView]
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return none, err
	}
	errs := append(unknown("status", in.Statuses, loom.TaskStatuses), unknown("action", in.Actions, loom.TaskActions)...)
	errs = append(errs, checkStorable("service", anyList(in.Services))...)
	errs = append(errs, checkStorable("node", string(in.Node))...)
	if err := loom.InvalidFields(errs); err != nil {
		return none, err
	}
	filter := store.TaskListFilter{Statuses: in.Statuses, Node: in.Node, Services: in.Services, Actions: in.Actions, Level: in.Level}
	return pageByNumber(in.Page, fmt.Sprint(ref, filter), []string{"number", "-number"}, func(t TaskView) int { return t.Ref.Number },
		func(r store.NumberRange) ([]TaskView, error) {
			tasks, err := store.TasksInRange(ctx, u.db, actor.Tenant, ref, filter, r)
			views := make([]TaskView, len(tasks))
			for i, t := range tasks {
				views[i] = TaskView{Task: t.Task, DependsOn: t.DependsOn, Behind: make([]planner.GateDependency, len(t.Behind))}
				for j, g := range t.Behind {
					views[i].Behind[j] = planner.GateDependency(g)
				}
			}
			return views, err
		})
}

// unknown names the values of a filter that do not exist, and those that do.
func unknown[T ~string](field string, given, valid []T) []loom.FieldError {
	for _, value := range given {
		if !slices.Contains(valid, value) {
			texts := make([]string, len(valid))
			for i, v := range valid {
				texts[i] = string(v)
			}
			return []loom.FieldError{{Field: field, Message: fmt.Sprintf("“%.40s” is none of %s.", value, strings.Join(texts, ", "))}}
		}
	}
	return nil
}

// pageByNumber reads a page of a list in the order of its running numbers. The
// filter, as a text, ties cursors to the list they were made for.
func pageByNumber[T any](p loom.Page, filter string, sorts []string, number func(T) int, read func(store.NumberRange) ([]T, error)) (Listed[T], error) {
	var out Listed[T]
	cursor, err := p.Check(2, sorts...)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256([]byte(filter))
	mark := base64.RawURLEncoding.EncodeToString(sum[:9])
	// A page before a cursor is the page after it in the opposite order, turned round.
	back := p.Before != ""
	r := store.NumberRange{Down: (p.Sort == "-number") != back}
	if cursor != nil {
		at, err := strconv.ParseInt(cursor.Keys[0], 10, 32)
		if err != nil || at < 0 || cursor.Keys[1] != mark {
			field := "after"
			if back {
				field = "before"
			}
			return out, invalid(field, "This cursor belongs to another list or filter; start from the first page.")
		}
		if r.Down {
			// Nothing is below 1, and 0 would mean no bound.
			r.Below = max(int(at), 1)
		} else {
			r.Above = int(at)
		}
	}
	if p.Limit > 0 {
		r.Limit = p.Limit + 1
	}
	if out.Items, err = read(r); err != nil {
		return out, err
	}
	out.Items, out.Next, out.Prev = loom.CutPage(p, out.Items, false, func(item T) []string { return []string{strconv.Itoa(number(item)), mark} })
	return out, nil
}
