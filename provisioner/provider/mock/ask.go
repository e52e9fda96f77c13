package mock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"loom/app/loom"
)

// inventory remembers invented machines; a nil one remembers nothing.
type inventory struct {
	mu       sync.Mutex
	machines map[string]loom.TaggedMachine
}

func (i *inventory) add(m loom.TaggedMachine) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.machines == nil {
		i.machines = map[string]loom.TaggedMachine{}
	}
	i.machines[m.ID] = m
}

func (i *inventory) remove(id string) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.machines, id)
}

func (i *inventory) list() []loom.TaggedMachine {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]loom.TaggedMachine, 0, len(i.machines))
	for _, m := range i.machines {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b loom.TaggedMachine) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// List gives the machines that this process invented and did not delete. It
// fails when fail_tasks names “list”.
func (p Provider) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	if err := pause(ctx, call); err != nil {
		return nil, err
	}
	if fieldLists(call, "list") {
		return nil, loom.NewError(loom.Unavailable, "The list of machines fails, as fail_tasks asks for.")
	}
	return p.invented.list(), nil
}

// Probe checks the fields and gives invented sizes and images. It fails when
// fail_tasks names “probe”.
func (p Provider) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	if err := pause(ctx, call); err != nil {
		return loom.Probe{}, err
	}
	probe := loom.Probe{OK: true}
	if fieldLists(call, "probe") {
		probe.Check("connection", false, "The connection fails, as fail_tasks asks for; take “probe” out of it.")
		return probe, nil
	}
	probe.Check("connection", true, "There is nothing to connect to, and that works.")
	if _, _, err := place(&loom.TaskSpec{Provider: call.Provider}); err != nil {
		probe.Check("addresses", false, fmt.Sprintf("The %v.", err))
	} else {
		probe.Check("addresses", true, "Machines get their addresses.")
	}
	probe.Flavors = []loom.ProbeFlavor{
		{ID: "small", Name: "Small", VCPU: 1, RAM: 1024}, {ID: "medium", Name: "Medium", VCPU: 2, RAM: 4096}, {ID: "large", Name: "Large", VCPU: 8, RAM: 16384},
	}
	probe.Images = []loom.ProbeImage{{ID: "mock", Name: "Whatever you like"}}
	return probe, nil
}

// pause waits as long as delay_ms says.
func pause(ctx context.Context, call *loom.ProviderCall) error {
	timer := time.NewTimer(time.Duration(number(call.Provider.Fields["delay_ms"])) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func fieldLists(call *loom.ProviderCall, name string) bool {
	list, _ := call.Provider.Fields["fail_tasks"].(string)
	return listed(list, name)
}
