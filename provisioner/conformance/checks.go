package conformance

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"loom/app/loom"
	"loom/provisioner/provider"
)

func (run *providerRun) describes() {
	t := run.Provider.Type()
	for _, e := range t.Validate() {
		run.fail("%s: %s", e.Field, e.Message)
	}
	if t.Label == "" && t.Description == "" {
		run.fail("it has neither a label nor a description; people choose by them")
	}
}

func id(spec *loom.TaskSpec) string {
	text, _ := spec.Results["providerid"].(string)
	return text
}

func (run *providerRun) creates() {
	spec, remove := run.machine()
	defer remove()
	c := run.do(spec, loom.ActionCreate)
	if !c.ok() {
		run.fail("create failed: %s", c)
		return
	}
	given, _ := c.result.Result["providerid"].(string)
	if given == "" {
		run.fail("the result has no providerid")
	}
	if early, _ := c.sink.fact("providerid").(string); early == "" {
		run.fail("the providerid was not reported before the end; after a crash nobody would know the machine")
	} else if given != "" && early != given {
		run.fail("the providerid reported first is %q, the one in the result %q", early, given)
	}
	user := ""
	switch auth := c.result.Result["ssh-auth"].(type) {
	case map[string]any:
		user, _ = auth["user"].(string)
	case map[string]string:
		user = auth["user"]
	}
	if user == "" {
		run.fail("the result has no ssh-auth.user; nobody could sign in")
	}
	run.count(spec, 1, "after CREATE")
}

func (run *providerRun) repeats() {
	spec, remove := run.machine()
	defer remove()
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	first := id(spec)
	if run.must(spec, loom.ActionCreate) && id(spec) != first {
		run.fail("the second CREATE gave %q, the first %q", id(spec), first)
	}
	run.count(spec, 1, "after two CREATEs")
}

func (run *providerRun) two() {
	a, removeA := run.machine()
	defer removeA()
	b, removeB := run.machine()
	defer removeB()
	// Findings are reported by one goroutine at a time.
	calls := make([]*call, 2)
	var both sync.WaitGroup
	for i, spec := range []*loom.TaskSpec{a, b} {
		both.Go(func() {
			calls[i] = perform(run.base(run.ctx), run.Limit, &sink{}, func(ctx context.Context, s loom.Sink) (loom.TaskResult, error) {
				return run.Provider.Create(ctx, with(spec, loom.ActionCreate), s)
			})
		})
	}
	both.Wait()
	for i, spec := range []*loom.TaskSpec{a, b} {
		if !calls[i].ok() {
			run.fail("create failed: %s", calls[i])
			continue
		}
		for name, value := range calls[i].result.Result {
			spec.Results[name] = value
		}
		run.count(spec, 1, "after two CREATEs at once")
	}
	if id(a) != "" && id(a) == id(b) {
		run.fail("both nodes got the machine %q", id(a))
	}
}

// forgotten: the process dies before anything of the first CREATE is stored.
func (run *providerRun) forgotten() {
	spec, remove := run.machine()
	defer remove()
	before := *spec
	before.Results = map[string]any{}
	c := run.doWith(run.ctx, &before, loom.ActionCreate, &sink{refuse: errors.New("the database is away")})
	if c.hung || c.panicked != nil {
		return
	}
	if run.must(spec, loom.ActionCreate) {
		run.count(spec, 1, "after a CREATE whose answer was forgotten, and another,")
		if first := id(&before); first != "" && first != id(spec) {
			run.fail("the second CREATE gave %q, the first had made %q", id(spec), first)
		}
	}
}

// lost: the cloud makes a machine, but the provider never hears of it.
func (run *providerRun) lost() {
	spec, remove := run.machine()
	defer remove()
	run.arrange(LostAnswer, 1)
	c := run.do(spec, loom.ActionCreate)
	if c.hung || c.panicked != nil {
		return
	}
	if c.err == nil && c.result.Status >= 200 && c.result.Status < 300 {
		run.fail("CREATE says that nothing was made (status %d) though nobody can know", c.result.Status)
	}
	run.retryable(c, loom.ActionCreate)
	run.heal()
	if run.must(spec, loom.ActionCreate) {
		run.count(spec, 1, "after a CREATE whose answer was lost, and another,")
	}
}

// retryable checks that a failure that may pass is not said to be forever.
func (run *providerRun) retryable(c *call, action loom.TaskAction) {
	if c.result.Status != 0 && c.result.Retryable != nil && !*c.result.Retryable {
		run.fail("%s says that trying again is useless, but it is not: %s", action, c)
	}
	if c.err != nil {
		run.fail("%s: %s", action, c)
	}
}

func (run *providerRun) confirms() {
	run.need(!run.NoConfirm, "there is nothing to sign in to")
	spec, remove := run.machine()
	defer remove()
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	for range 2 {
		c := run.do(spec, loom.ActionConfirm)
		if !c.ok() {
			run.fail("confirm failed: %s", c)
			return
		}
		if c.result.Addresses[loom.AccessV4] == "" {
			run.fail("confirm gave no ipaddresses.access_v4")
		}
	}
}

// slow checks a CONFIRM while the cloud is slow with a machine.
func (run *providerRun) slow(fault Fault, n int) {
	run.need(!run.NoConfirm, "there is nothing to sign in to")
	spec, remove := run.machine()
	defer remove()
	run.arrange(fault, n)
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	if c := run.do(spec, loom.ActionConfirm); !c.ok() {
		run.fail("confirm failed: %s", c)
	} else if c.result.Addresses[loom.AccessV4] == "" {
		run.fail("confirm gave no ipaddresses.access_v4")
	}
	run.count(spec, 1, "in the end")
}

func (run *providerRun) pending() { run.slow(Pending, 3) }

func (run *providerRun) lagging() { run.slow(Lagging, 2) }

// hinted checks that an action that failed because of throttling says that trying again helps.
func (run *providerRun) hinted(c *call, action loom.TaskAction) {
	says := c.result.RetryAfter > 0 || c.result.Retryable != nil
	if c.err == nil && c.result.Status != 0 && !says && !run.NoRetryHint {
		run.fail("%s gives up at the first throttling: wait within the time limit, or fail with “retryable” true, “retry_after” or exit status 75: %s", action, c)
	}
	if c.err == nil && c.result.Status != 0 && action == loom.ActionConfirm && !c.result.KeepMachine && !run.NoRetryHint {
		run.fail("confirm gives a machine up because of throttling: wait within the time limit, or fail with “keep_machine” true or exit status 75: %s", c)
	}
}

// throttled: each action is refused a few times; it waits, or fails for now.
func (run *providerRun) throttled() {
	spec, remove := run.machine()
	defer remove()
	actions := []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionDelete}
	for _, action := range actions {
		if action == loom.ActionConfirm && run.NoConfirm {
			continue
		}
		run.arrange(Throttled, 2)
		c := run.do(spec, action)
		if c.hung || c.panicked != nil {
			return
		}
		run.retryable(c, action)
		run.hinted(c, action)
		made := id(spec) != ""
		if action == loom.ActionCreate && made && c.result.Status >= 200 && c.result.Status < 300 {
			run.fail("CREATE made a machine and says that it did not (status %d)", c.result.Status)
		}
		run.heal()
		if !c.ok() && !run.must(spec, action) {
			return
		}
		if action != loom.ActionDelete {
			run.count(spec, 1, "after throttling")
		} else {
			run.count(spec, 0, "after a throttled DELETE")
		}
	}
}

func (run *providerRun) deletes() {
	spec, remove := run.machine()
	defer remove()
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	c := run.do(spec, loom.ActionDelete)
	if !c.ok() {
		run.fail("delete failed: %s", c)
		return
	}
	if value, there := c.result.Result["providerid"]; !there || value != nil {
		run.fail("DELETE does not clear the providerid; the node would keep a machine that is gone")
	}
	run.count(spec, 0, "after DELETE")
}

func (run *providerRun) gone() {
	spec, remove := run.machine()
	defer remove()
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	known := with(spec, loom.ActionDelete)
	if !run.must(spec, loom.ActionDelete) {
		return
	}
	if c := run.do(known, loom.ActionDelete); !c.ok() {
		run.fail("a second DELETE failed: %s", c)
	}
	never, _ := run.machine()
	never.Results["providerid"] = "loom-conformance-no-such-machine"
	if c := run.do(never, loom.ActionDelete); !c.ok() {
		run.fail("DELETE of a machine that never was failed: %s", c)
	}
}

// unnamed: CREATE made a machine and nobody stored its id.
func (run *providerRun) unnamed() {
	spec, remove := run.machine()
	defer remove()
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	nameless := with(spec, loom.ActionDelete)
	nameless.Results = map[string]any{}
	if c := run.do(nameless, loom.ActionDelete); !c.ok() {
		run.fail("DELETE without an id failed: %s", c)
	}
	run.count(spec, 0, "after DELETE without an id")
}

// wrong returns the same task with credentials that the cloud refuses.
func (run *providerRun) wrong(spec *loom.TaskSpec) *loom.TaskSpec {
	run.need(run.Refused != nil, "the target has no credentials to refuse")
	refused := with(spec, spec.Action)
	fields := map[string]any{}
	for name, value := range spec.Provider.Fields {
		fields[name] = value
	}
	refused.Provider.Fields = fields
	run.Refused(refused)
	return refused
}

func (run *providerRun) refusedCreate() {
	spec, remove := run.machine()
	defer remove()
	c := run.do(run.wrong(spec), loom.ActionCreate)
	if c.ok() || c.err != nil || c.result.Status < 200 || c.result.Status >= 300 {
		run.fail("CREATE with wrong credentials has to fail with a status from 200 to 299, for nothing was made: %s", c)
	}
	run.count(spec, 0, "after a CREATE with wrong credentials")
}

func (run *providerRun) refusedConfirm() {
	run.need(!run.NoConfirm, "there is nothing to sign in to")
	spec, remove := run.machine()
	defer remove()
	refused := run.wrong(spec)
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	refused.Results = with(spec, "").Results
	if c := run.do(refused, loom.ActionConfirm); c.ok() || c.err != nil {
		run.fail("CONFIRM with wrong credentials has to fail: %s", c)
	}
}

func (run *providerRun) refusedDelete() {
	spec, remove := run.machine()
	defer remove()
	refused := run.wrong(spec)
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	refused.Results = with(spec, "").Results
	c := run.do(refused, loom.ActionDelete)
	if c.ok() || c.err != nil {
		run.fail("DELETE with wrong credentials has to fail, or a machine is forgotten: %s", c)
	}
	if value, cleared := c.result.Result["providerid"]; cleared && value == nil {
		run.fail("DELETE with wrong credentials clears the providerid")
	}
	run.count(spec, 1, "after a DELETE with wrong credentials")
}

func (run *providerRun) nothingLeft() {
	run.need(run.Machines != nil, "the machines cannot be listed")
	all, err := run.Machines(run.base(run.ctx))
	if err != nil {
		run.fail("the machines cannot be listed: %v", err)
	}
	for _, key := range run.keys {
		if ids := all[key]; len(ids) > 0 {
			run.fail("the machines %v are left", ids)
		}
	}
}

func (run *providerRun) lists() {
	spec, remove := run.machine()
	defer remove()
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	machines, err := run.Provider.(provider.Lister).List(run.base(run.ctx), run.call())
	if err != nil {
		run.fail("the machines cannot be listed: %v", err)
		return
	}
	i := slices.IndexFunc(machines, func(m loom.TaggedMachine) bool { return m.ID == spec.Results["providerid"] })
	if i < 0 {
		run.fail("the list lacks machine %v", spec.Results["providerid"])
		return
	}
	m := machines[i]
	if m.Key != spec.IdempotencyKey {
		run.fail("the machine is listed with the key %q, not %q", m.Key, spec.IdempotencyKey)
	}
	if !slices.Contains([]loom.MachineState{"", loom.StateRunning, loom.StateStopped, loom.StateOther}, m.State) {
		run.fail("the machine is listed as %q; known are %s, %s and %s", m.State, loom.StateRunning, loom.StateStopped, loom.StateOther)
	}
	for _, address := range m.Addresses {
		if _, err := netip.ParseAddr(address); err != nil {
			run.fail("the machine is listed with the address %q, which is no IP address", address)
		}
	}
}

func (run *providerRun) reboots() {
	spec, remove := run.machine()
	defer remove()
	if c := run.do(spec, loom.ActionReboot); c.ok() {
		run.fail("REBOOT of a machine that is not there succeeded")
	}
	run.count(spec, 0, "after the REBOOT of none")
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	id := spec.Results["providerid"]
	for range 2 {
		if !run.must(spec, loom.ActionReboot) {
			return
		}
	}
	run.count(spec, 1, "after REBOOT")
	if spec.Results["providerid"] != id {
		run.fail("REBOOT changed the id of the machine from %v to %v", id, spec.Results["providerid"])
	}
}
