package wire

import (
	"encoding/json"

	"loom/app/loom"
	"loom/app/processes"
)

// Provisioner is a process that runs tasks, as old clients read it.
// Usage and assignments are by the names of tenants.
type Provisioner struct {
	ID          loom.ProcessID `json:"id"`
	Host        string         `json:"host"`
	Port        int            `json:"port"`
	Total       int            `json:"capacityTotal"`
	Free        int            `json:"capacityFree"`
	Usage       map[string]int `json:"usage"`
	Assignments map[string]int `json:"assignments"`
}

// NewProvisioner gives the wire form.
func NewProvisioner(p processes.Process) Provisioner {
	return Provisioner{ID: p.ID, Host: p.Host, Port: p.Port, Total: p.Capacity, Free: p.Free(), Usage: object(p.Working), Assignments: object(p.Assigned)}
}

// Process is a running process. Capacity, the number of tasks that
// run, and the workers assigned to tenants, by name, are those of a provisioner.
type Process struct {
	ID       loom.ProcessID `json:"id"`
	Kind     string         `json:"kind" enum:"web,scheduler,provisioner"`
	Host     string         `json:"host"`
	Version  string         `json:"version"`
	Started  int64          `json:"startTime"`
	LastSeen int64          `json:"lastSeen"`
	Draining bool           `json:"draining"`
	Capacity *int           `json:"capacity,omitempty"`
	Busy     *int           `json:"busy,omitempty"`
	Tenants  map[string]int `json:"tenants,omitempty" description:"Workers assigned, by tenant name."`
	// Plugins are the types that a provisioner carries, with their release; Error is what
	// last went wrong in the process itself.
	Plugins map[string]string `json:"plugins,omitempty" description:"Plugin types that a provisioner carries, with their release."`
	Error   string            `json:"lastError,omitempty" description:"What last went wrong in the process itself."`
	ErrorAt *int64            `json:"lastErrorTime,omitempty"`
}

// NewProcess gives the wire form.
func NewProcess(p processes.Process) Process {
	w := Process{
		ID: p.ID, Kind: p.Kind, Host: p.Host, Version: p.Version, Started: Millis(p.Started), LastSeen: Millis(p.LastSeen), Draining: p.Draining,
	}
	if p.Kind == loom.ProcessProvisioner {
		busy := 0
		for _, n := range p.Working {
			busy += n
		}
		w.Capacity, w.Busy, w.Tenants = &p.Capacity, &busy, p.Assigned
		w.Plugins = p.Carried()
	}
	if p.Trouble != "" {
		at := Millis(p.TroubleAt)
		w.Error, w.ErrorAt = p.Trouble, &at
	}
	return w
}

// Queue counts the tasks of a tenant that wait and that are worked on.
type Queue struct {
	Waiting int `json:"queued"`
	Running int `json:"inProgress"`
	Total   int `json:"total"`
}

// NewQueues gives the counts by the names of tenants.
func NewQueues(counts []processes.QueueCount) map[string]Queue {
	out := map[string]Queue{}
	for _, c := range counts {
		out[c.Tenant] = Queue{Waiting: c.Waiting, Running: c.Running, Total: c.Waiting + c.Running}
	}
	return out
}

// Usage is for how long nodes were used; times are seconds.
type Usage struct {
	Start int64       `json:"start"`
	End   int64       `json:"end"`
	Data  []UsageItem `json:"data"`
}

// UsageItem is the use in one interval, of one value of what it was split by.
type UsageItem struct {
	Time  int64       `json:"time"`
	Value json.Number `json:"value"`
	Split *string     `json:"split,omitempty"`
}

// NewUsage gives the wire form; split says whether items carry what they are of.
func NewUsage(u processes.Usage, split bool) Usage {
	w := Usage{Start: u.Start, End: u.End, Data: make([]UsageItem, len(u.Items))}
	for i, item := range u.Items {
		w.Data[i] = UsageItem{Time: item.Time, Value: json.Number(item.Value)}
		if split {
			w.Data[i].Split = &u.Items[i].Split
		}
	}
	return w
}
