package wire

import (
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/lenient"
	"loom/app/loom"
)

// maxMillis is the last moment that the database and every clock can hold: the
// end of the year 9999.
const maxMillis = 253_402_300_799_999

// ReadMillis reads a time in milliseconds since 1970 as a query writes it; ok is
// false for anything else, and for times outside the years 1970 to 9999.
func ReadMillis(text string) (int64, bool) {
	millis, err := strconv.ParseInt(text, 10, 64)
	return millis, err == nil && millis >= 0 && millis <= maxMillis
}

// ReadDelete reads the optional body of a delete: provider fields, whether a running
// operation is to be aborted first, and whether machines that a delete left behind are
// given up. Invalid.
func ReadDelete(body []byte) (clusters.DeleteInput, error) {
	if Empty(body) {
		return clusters.DeleteInput{}, nil
	}
	o, err := lenient.Read(body)
	if err != nil {
		return clusters.DeleteInput{}, err
	}
	readPolicy(o, loom.ClusterDelete)
	return clusters.DeleteInput{ProviderFields: providerFields(o), Abort: o.Bool("abort"), Abandon: o.Bool("abandon")}, o.Err()
}

// policyWord reads a failure policy. Whether operations of the kind take it is for the
// use case, which first looks for the cluster.
func policyWord(o *lenient.Object) string {
	policy := o.Text("onFailure")
	for _, e := range loom.CheckOnFailure("onFailure", policy) {
		o.Fail(e.Field, "%s", e.Message)
	}
	return policy
}

// readPolicy refuses a policy that operations of an action do not take: there is only
// one that they do.
func readPolicy(o *lenient.Object, action loom.ClusterAction) {
	for _, e := range clusters.CheckPolicy(action, o.Text("onFailure")) {
		o.Fail(e.Field, "%s", e.Message)
	}
}

// ReadOperation reads the optional body of a request that has nothing to say but
// provider fields. Invalid, also for a failure policy that the action does not take;
// no action is a request that begins no operation.
func ReadOperation(action loom.ClusterAction, body []byte) (map[string]any, error) {
	if Empty(body) {
		return nil, nil
	}
	o, err := lenient.Read(body)
	if err != nil {
		return nil, err
	}
	readPolicy(o, action)
	return providerFields(o), o.Err()
}

// optionalBody reports whether a request for a change of the kind may come without a body.
func optionalBody(kind loom.ChangeKind) bool {
	switch kind {
	case loom.ChangeUpgrade, loom.ChangeUpdate, loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart, loom.ChangeAuthorize, loom.ChangeRollback, loom.ChangeRetry:
		return true
	}
	return false
}

// ReadChange reads the body of a request for a change of a cluster: what its kind has, the
// failure policy and the provider fields. Invalid; whatever depends on the cluster is for the
// use case, which looks for it first.
func ReadChange(kind loom.ChangeKind, body []byte) (clusters.PreviewInput, error) {
	in := clusters.PreviewInput{Kind: kind}
	if Empty(body) && optionalBody(kind) {
		return in, nil
	}
	o, err := lenient.Read(body)
	if err != nil {
		return in, err
	}
	if kind == loom.ChangeAddServices && !o.Has("services") {
		o.Fail("services", "Name the services to add.")
	}
	readChange(o, &in)
	return in, o.Err()
}

// readChange reads the request of a change.
func readChange(o *lenient.Object, in *clusters.PreviewInput) {
	c := &in.Change
	in.ProviderFields, c.OnFailure = providerFields(o), policyWord(o)
	switch in.Kind {
	case loom.ChangeConfigure:
		in.Configure = readConfigure(o)
	case loom.ChangeAddServices:
		in.Services = o.Texts("services")
	case loom.ChangeExpand:
		c.Machines = o.Int("numMachines")
	case loom.ChangeShrink:
		c.Nodes, c.Dead = nodeIDs(o, "nodes"), nodeIDs(o, "dead")
		if o.Has("numMachines") {
			if c.Machines = o.Int("numMachines"); c.Machines < 1 {
				o.Fail("numMachines", "Enter the number of nodes that the cluster is to keep, at least 1.")
			}
		}
	case loom.ChangeRemoveServices:
		c.Services = o.Texts("services")
	case loom.ChangeUpgrade:
		c.Services = o.Texts("services")
		readRoll(o, c)
	case loom.ChangeUpdate:
		o.EachOf("entries", func(_ int, e *lenient.Object) {
			c.Entries = append(c.Entries, clusters.EntryVersion{Kind: loom.EntityKind(e.Text("kind")), Name: e.Text("name"), Version: e.Int("version")})
		})
		readRoll(o, c)
	case loom.ChangeResize:
		if o.Has("nodes") {
			o.Fail("nodes", "A resize is about all nodes, or with “services” about those of these services; leave this out.")
		}
		c.HardwareType, c.Services = o.Text("hardwaretype"), o.Texts("services")
		readRoll(o, c)
	case loom.ChangeRepair:
		c.Nodes, c.Dead = nodeIDs(o, "nodes"), nodeIDs(o, "dead")
		c.How, c.Services = loom.RepairHow(o.Text("how")), o.Texts("services")
	case loom.ChangeRetry:
		c.Skip, c.Reason = o.Ints("skip"), o.Text("reason")
		c.Services, c.RemoveServices, c.ConfigPatch = o.Texts("services"), o.Texts("removeServices"), o.FreeObject("configPatch")
	case loom.ChangeDelete:
		in.Abort = o.Bool("abort")
	}
}

// readConfigure reads how a config changes. Services restart unless the request says
// otherwise. The use case checks that there is exactly one way to change it.
func readConfigure(o *lenient.Object) *clusters.ConfigureInput {
	restart := o.BoolPtr("restart")
	return &clusters.ConfigureInput{
		Config: o.FreeObject("config"), ConfigPatch: o.FreeObject("configPatch"), Revision: o.IntPtr("revision"), Restart: restart == nil || *restart,
	}
}

// readRoll reads how many nodes are changed at a time, and how many must be up.
func readRoll(o *lenient.Object, c *clusters.ChangeInput) {
	if batch := o.IntPtr("batch"); batch != nil {
		if c.Batch = *batch; c.Batch < 1 {
			o.Fail("batch", "A batch has at least 1 node.")
		}
	}
	if c.MinHealthy = o.IntPtr("minHealthy"); c.MinHealthy != nil && *c.MinHealthy < 0 {
		o.Fail("minHealthy", "The number of nodes that must be up is 0 or more.")
	}
}

// maxNamedNodes is how many nodes a request may name: as many as the largest cluster has.
const maxNamedNodes = 10_000

func nodeIDs(o *lenient.Object, field string) []loom.NodeID {
	var ids []loom.NodeID
	seen := map[loom.NodeID]bool{}
	for _, text := range o.Texts(field) {
		if id := loom.NodeID(strings.ToLower(text)); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) > maxNamedNodes {
		o.Fail(field, "Name at most %d nodes at once.", maxNamedNodes)
		return nil
	}
	return ids
}

// readPreview reads the request for a preview of a change to a cluster that exists: the
// cluster, what a body of the change has no room for since its path has it, and that body.
func readPreview(o, request *lenient.Object, in *clusters.PreviewInput) {
	id, ok := loom.ParseClusterID(o.Text("clusterId"))
	if !ok {
		o.Fail("clusterId", "Name the cluster, such as “00000042”.")
	}
	in.Cluster = id
	switch in.Kind {
	case loom.ChangeStart, loom.ChangeStop, loom.ChangeRestart:
		in.Service = o.Text("service")
	case loom.ChangeRollback, loom.ChangeRetry:
		in.Change.Operation = request.Int("operation") // of a retry 0: the latest
	}
	readChange(request, in)
}

// ReadSkip reads why a task is left out. Invalid.
func ReadSkip(body []byte) (string, error) {
	o, err := lenient.Read(body)
	if err != nil {
		return "", err
	}
	reason := o.Text("reason")
	for _, e := range loom.CheckReason("reason", reason) {
		if o.Err() == nil {
			o.Fail(e.Field, "%s", e.Message)
		}
	}
	return reason, o.Err()
}
