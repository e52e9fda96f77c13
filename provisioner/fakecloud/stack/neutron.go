package stack

import (
	"encoding/json"
	"fmt"
	"strings"

	"loom/provisioner/fakecloud"
)

// networkNames are the names of the project's networks by id.
var networkNames = map[string]string{LabNet: "lab-net", StorageNet: "a-storage-net", External: ExternalName}

// Address is a floating address.
type Address struct {
	ID, IP, Network, Port, Description, Project string
	Revision                                    int
}

// Stranger is a port of a server that is not Loom's.
const Stranger = "port-of-a-stranger"

// portOf is the id of a machine's only port.
func portOf(m fakecloud.Machine) string { return "port-" + m.ID }

// Give adds a floating address that is there already, and gives its id.
func (s *Stack) Give(a Address) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.give(a).ID
}

func (s *Stack) give(a Address) *Address {
	s.made++
	a.ID, a.Revision = fmt.Sprintf("f10a7000-0000-4000-8000-%012d", s.made), 1
	if a.IP == "" {
		a.IP = fmt.Sprintf("198.51.100.%d", s.made)
	}
	if s.FloatingAddress != "" {
		a.IP = s.FloatingAddress
	}
	if a.Network == "" {
		a.Network = External
	}
	if a.Project == "" {
		a.Project = ProjectID
	}
	s.floats = append(s.floats, &a)
	return &a
}

// Addresses returns the floating addresses that there are.
func (s *Stack) Addresses() (all []Address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune()
	for _, f := range s.floats {
		all = append(all, *f)
	}
	return all
}

// prune takes the addresses off the ports that are no more.
func (s *Stack) prune() {
	for _, f := range s.floats {
		if f.Port != "" && f.Port != Stranger && s.machineOf(f.Port) == nil {
			f.Port = ""
			f.Revision++
		}
	}
}

// machineOf returns the machine of a port.
func (s *Stack) machineOf(port string) *fakecloud.Machine {
	for _, m := range s.cloud.Machines() {
		if portOf(m) == port && m.State != fakecloud.Gone && m.State != fakecloud.Leaving {
			return &m
		}
	}
	return nil
}

func fault(status int, kind, message string) fakecloud.Answer {
	return answer(status, object{"NeutronError": object{"type": kind, "message": message, "detail": ""}})
}

func shown(a *Address) object {
	out := object{"id": a.ID, "floating_ip_address": a.IP, "floating_network_id": a.Network, "port_id": nil, "fixed_ip_address": nil, "description": a.Description,
		"project_id": a.Project, "tenant_id": a.Project, "status": "DOWN", "revision_number": a.Revision, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
	if a.Port != "" {
		out["port_id"], out["status"] = a.Port, "ACTIVE"
	}
	return out
}

// neutron carries out the calls of Neutron.
func (s *Stack) neutron(op, id string, r *fakecloud.Request) fakecloud.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune()
	query := r.URL.Query()
	switch op {
	case Networks:
		list := []any{}
		for net, name := range networkNames {
			if (query.Get("name") == "" || query.Get("name") == name) && (query.Get("router:external") == "" || net == External) {
				list = append(list, object{"id": net, "name": name})
			}
		}
		return answer(200, object{"networks": list})
	case Network:
		if networkNames[id] == "" {
			return fault(404, "NetworkNotFound", "Network "+id+" could not be found.")
		}
		return answer(200, object{"network": object{"id": id, "name": networkNames[id]}})
	case Groups:
		return answer(200, object{"security_groups": []any{object{"id": "sg-1", "name": Group}}})
	case Ports:
		list := []any{}
		for _, m := range s.cloud.Machines() {
			if m.ID == query.Get("device_id") && s.machineOf(portOf(m)) != nil {
				list = append(list, port(m))
			}
		}
		return answer(200, object{"ports": list})
	case Port:
		if id == Stranger {
			return answer(200, object{"port": object{"id": Stranger, "device_id": "their-server"}})
		}
		if m := s.machineOf(id); m != nil {
			return answer(200, object{"port": port(*m)})
		}
		return fault(404, "PortNotFound", "Port "+id+" could not be found.")
	case Floats:
		list := []any{}
		for _, f := range s.floats {
			if (query.Get("project_id") == "" || query.Get("project_id") == f.Project) && (query.Get("description") == "" || query.Get("description") == f.Description) {
				list = append(list, shown(f))
			}
		}
		return answer(200, object{"floatingips": list})
	case Float:
		return s.makeFloat(r)
	}
	return s.float(op, id, r)
}

func port(m fakecloud.Machine) object {
	return object{"id": portOf(m), "device_id": m.ID, "fixed_ips": []any{object{"subnet_id": "subnet-1", "ip_address": m.Backing.Private}}}
}

func (s *Stack) makeFloat(r *fakecloud.Request) fakecloud.Answer {
	var in struct {
		Float struct {
			Network     string `json:"floating_network_id"`
			Port        string `json:"port_id"`
			Description string
		} `json:"floatingip"`
	}
	switch err := json.Unmarshal(r.Body, &in); {
	case err != nil:
		return fault(400, "HTTPBadRequest", "Invalid body")
	case in.Float.Network != External:
		return fault(404, "NetworkNotFound", "Network "+in.Float.Network+" could not be found.")
	case s.made >= s.Quota:
		return fault(409, "OverQuota", "Quota exceeded for resources: ['floatingip'].")
	case in.Float.Port != "" && s.machineOf(in.Float.Port) == nil:
		return fault(404, "PortNotFound", "Port "+in.Float.Port+" could not be found.")
	}
	for _, f := range s.floats {
		if f.Port == in.Float.Port && f.Port != "" {
			return fault(409, "FloatingIPPortAlreadyAssociated", "The port has a floating IP already.")
		}
	}
	return answer(201, object{"floatingip": shown(s.give(Address{Network: in.Float.Network, Port: in.Float.Port, Description: in.Float.Description}))})
}

// float carries out a call about one floating address.
func (s *Stack) float(op, id string, r *fakecloud.Request) fakecloud.Answer {
	for n, f := range s.floats {
		if f.ID != id {
			continue
		}
		switch op {
		case GetFloat:
			return answer(200, object{"floatingip": shown(f)})
		case Unfloat:
			s.floats = append(s.floats[:n:n], s.floats[n+1:]...)
			return fakecloud.Answer{Status: 204}
		}
		var in struct {
			Float struct {
				Port *string `json:"port_id"`
			} `json:"floatingip"`
		}
		if err := json.Unmarshal(r.Body, &in); err != nil {
			return fault(400, "HTTPBadRequest", "Invalid body")
		}
		if match := r.Header.Get("If-Match"); match != "" && strings.TrimPrefix(match, "revision_number=") != fmt.Sprint(f.Revision) {
			return fault(412, "RevisionNumberConstraintFailed", "Constrained to "+match+", but current revision is "+fmt.Sprint(f.Revision))
		}
		f.Revision++
		f.Port = ""
		if in.Float.Port != nil {
			if s.machineOf(*in.Float.Port) == nil {
				return fault(404, "PortNotFound", "Port "+*in.Float.Port+" could not be found.")
			}
			f.Port = *in.Float.Port
		}
		out := shown(f)
		if f.Port != "" && s.Thieves > 0 {
			s.Thieves--
			f.Port = Stranger
		}
		return answer(200, object{"floatingip": out})
	}
	return fault(404, "FloatingIPNotFound", "Floating IP "+id+" could not be found")
}
