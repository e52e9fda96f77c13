package gce

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"loom/provisioner/fakecloud"
)

// Wanted is what an instance was asked for with.
type Wanted struct {
	Name, MachineType string
	Labels            map[string]string
	Tags              struct{ Items []string }
	Metadata          struct{ Items []struct{ Key, Value string } }
	Scheduling        struct{ AutomaticRestart *bool }
	NetworkInterfaces []struct {
		Network, Subnetwork string
		AccessConfigs       []struct{ Type string }
	}
	Disks []WantedDisk
}

// WantedDisk is one of its disks.
type WantedDisk struct {
	Boot, AutoDelete bool
	DeviceName       string
	InitializeParams struct {
		DiskName, SourceImage, DiskType string
		DiskSizeGb                      int `json:",string"`
		Labels                          map[string]string
	}
}

// Disk is one of the project.
type Disk struct {
	Name   string
	Labels map[string]string
	// Instance that it is attached to, "" for none.
	Instance   string
	autoDelete bool
}

var (
	nameForm  = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelForm = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
	idForm    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// insert takes a request for an instance. The same request id gives the same
// operation, also one that failed.
func (g *GCE) insert(r *fakecloud.Request) fakecloud.Answer {
	var in Wanted
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return g.Refuse(400, "parseError", "Parse Error")
	}
	if reason := check(in); reason != "" {
		return g.Refuse(400, "invalid", reason)
	}
	id := r.URL.Query().Get("requestId")
	if id != "" && !idForm.MatchString(id) {
		return g.Refuse(400, "invalid", "Invalid value for field 'requestId'")
	}
	// Held until the instance is made, so that two requests at once make one.
	g.mu.Lock()
	defer g.mu.Unlock()
	if known, ok := g.requests[id]; ok && id != "" {
		return answer(200, g.operation(known, false))
	}
	for _, m := range g.cloud.Machines() {
		if m.Name == in.Name && m.State != fakecloud.Gone {
			return g.Refuse(409, "", "The resource 'projects/"+Project+"/zones/"+Zone+"/instances/"+in.Name+"' already exists")
		}
	}
	for _, d := range in.Disks {
		if g.disks[d.InitializeParams.DiskName] != nil {
			return g.Refuse(409, "", "The resource 'projects/"+Project+"/zones/"+Zone+"/disks/"+d.InitializeParams.DiskName+"' already exists")
		}
	}
	op := operation{name: fmt.Sprintf("operation-%d", len(g.done)+1)}
	if len(g.failures) > 0 {
		op.failure, g.failures = g.failures[0], g.failures[1:]
	} else {
		key := in.Labels["loom-key"]
		if _, err := g.cloud.Make(r.Context(), fakecloud.Machine{ID: in.Name, Key: key, Name: in.Name, Flavor: in.MachineType,
			Image: in.Disks[0].InitializeParams.SourceImage, Tags: in.Labels, Request: in}); err != nil {
			return g.Refuse(500, "", err.Error())
		}
		for _, d := range in.Disks {
			name := d.InitializeParams.DiskName
			g.disks[name] = &Disk{Name: name, Labels: d.InitializeParams.Labels, Instance: in.Name, autoDelete: d.AutoDelete}
		}
	}
	g.requests[id], g.done[op.name] = op, op
	return answer(200, g.operation(op, false))
}

// check says what the cloud would refuse.
func check(in Wanted) string {
	switch {
	case !nameForm.MatchString(in.Name):
		return "Invalid value for field 'resource.name': '" + in.Name + "'."
	case in.MachineType != "zones/"+Zone+"/machineTypes/"+Size:
		return "Invalid value for field 'resource.machineType': '" + in.MachineType + "'."
	case len(in.Disks) == 0 || !in.Disks[0].Boot:
		return "Invalid value for field 'resource.disks'."
	case len(in.NetworkInterfaces) != 1:
		return "At least one network interface is required."
	}
	for key, value := range in.Labels {
		if !labelForm.MatchString(key) || !labelForm.MatchString(value) {
			return "Invalid value for field 'resource.labels': '" + key + "=" + value + "'."
		}
	}
	n := in.NetworkInterfaces[0]
	if n.Network != "" && n.Network != "global/networks/"+Network || n.Network == "" && n.Subnetwork == "" ||
		n.Subnetwork != "" && n.Subnetwork != "regions/us-central1/subnetworks/"+Subnetwork {
		return "Invalid value for field 'resource.networkInterfaces[0]'."
	}
	for i, d := range in.Disks {
		p := d.InitializeParams
		switch {
		case !nameForm.MatchString(p.DiskName):
			return "Invalid value for field 'resource.disks[" + fmt.Sprint(i) + "].initializeParams.diskName': '" + p.DiskName + "'."
		case i == 0 && p.SourceImage == "projects/"+Project+"/global/images/"+Image && p.DiskSizeGb < ImageSize:
			return fmt.Sprintf("Requested disk size cannot be smaller than the image size (%d GB)", ImageSize)
		case !strings.HasPrefix(p.DiskType, "zones/"+Zone+"/diskTypes/pd-"):
			return "Invalid value for field 'diskType': '" + p.DiskType + "'."
		}
	}
	return ""
}

func (g *GCE) operation(op operation, over bool) any {
	body := map[string]any{"kind": "compute#operation", "name": op.name, "status": "RUNNING"}
	if over {
		body["status"] = "DONE"
		if op.failure.Code != "" {
			body["error"] = map[string]any{"errors": []any{map[string]any{"code": op.failure.Code, "message": op.failure.Message}}}
		}
	}
	return body
}

func (g *GCE) wait(name string) fakecloud.Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	op, ok := g.done[name]
	if !ok {
		return g.missing("operations", name)
	}
	return answer(200, g.operation(op, true))
}

// remove begins the end of an instance. Its disks go once it is gone.
func (g *GCE) remove(name string) fakecloud.Answer {
	if m, ok := g.cloud.Remove(name); !ok || m.State == fakecloud.Gone {
		return g.missing("instances", name)
	}
	return answer(200, map[string]any{"name": "operation-delete-" + name, "status": "RUNNING"})
}

// settle detaches the disks of an instance that is gone, and removes those that go
// with it.
func (g *GCE) settle(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.disks {
		if d.Instance != name {
			continue
		}
		d.Instance = ""
		if d.autoDelete && !g.keepDisks {
			delete(g.disks, d.Name)
		}
	}
}

// Disks returns the names of the disks.
func (g *GCE) Disks() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name := range g.disks {
		names = append(names, name)
	}
	return names
}

// AddDisk makes a disk that no instance has.
func (g *GCE) AddDisk(name string, labels map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.disks[name] = &Disk{Name: name, Labels: labels}
}

func (g *GCE) doDisk(op, name string, r *fakecloud.Request) fakecloud.Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if op == ListDisks {
		items := []any{}
		for _, d := range g.disks {
			if fits(r, d.Labels) {
				items = append(items, map[string]any{"name": d.Name, "labels": d.Labels})
			}
		}
		return answer(200, map[string]any{"items": items})
	}
	d := g.disks[name]
	switch {
	case d == nil:
		return g.missing("disks", name)
	case op == GetDisk:
		return answer(200, map[string]any{"name": d.Name, "labels": d.Labels})
	case d.Instance != "":
		return g.Refuse(400, "resourceInUseByAnotherResource", "The disk resource '"+name+"' is already being used by '"+d.Instance+"'")
	}
	delete(g.disks, name)
	return answer(200, map[string]any{"name": "operation-delete-" + name, "status": "RUNNING"})
}

var statuses = map[fakecloud.State]string{fakecloud.Pending: "STAGING", fakecloud.Running: "RUNNING", fakecloud.Broken: "TERMINATED", fakecloud.Stopped: "TERMINATED",
	fakecloud.Leaving: "STOPPING", fakecloud.Gone: "STOPPING"}

func (g *GCE) instance(m fakecloud.Machine) any {
	in, _ := m.Request.(Wanted)
	network := map[string]any{"name": "nic0"}
	if m.Backing.Private != "" {
		network["networkIP"] = m.Backing.Private
	}
	if m.Backing.Public != "" && len(in.NetworkInterfaces) > 0 && len(in.NetworkInterfaces[0].AccessConfigs) > 0 {
		network["accessConfigs"] = []any{map[string]any{"type": "ONE_TO_ONE_NAT", "natIP": m.Backing.Public}}
	}
	return map[string]any{"name": m.Name, "status": statuses[m.State], "statusMessage": m.Reason, "labels": m.Tags, "machineType": "https://www.googleapis.com/compute/v1/projects/" + Project + "/" + m.Flavor,
		"creationTimestamp": m.Made.Format(time.RFC3339), "networkInterfaces": []any{network}}
}
