package api

import "testing"

// TestBadInputOfChanges holds the bodies that change the layout of a cluster, or the
// versions of its services, against what people and programs get wrong in them.
func TestBadInputOfChanges(t *testing.T) {
	t.Parallel()
	const calm, busy, nobody = "/v2/clusters/1", "/v2/clusters/2", "/v2/clusters/999"
	var cases []badInput
	// at holds for the call itself and for its preview, where fields are within the request.
	at := func(name, verb, kind, body string, status int, field string) {
		cases = append(cases, badInput{name, post, calm + "/" + verb, body, status, field})
		within := ""
		if field != "" {
			within = "request." + field
		}
		cases = append(cases, badInput{"preview: " + name, post, "/v2/previews", `{"kind":"` + kind + `","clusterId":"1","request":` + body + `}`, status, within})
	}
	for _, v := range []struct{ verb, kind string }{
		{"expand", "expand"}, {"shrink", "shrink"}, {"remove-services", "remove_services"}, {"upgrade", "upgrade"}, {"resize", "resize"}, {"repair", "repair"},
	} {
		cases = append(cases,
			badInput{v.verb + ": not JSON", post, calm + "/" + v.verb, `x`, 400, ""},
			badInput{v.verb + ": a list", post, calm + "/" + v.verb, `[]`, 400, ""},
			badInput{v.verb + ": busy", post, busy + "/" + v.verb, `{}`, 409, ""},
			badInput{v.verb + ": no cluster", post, nobody + "/" + v.verb, `{}`, 404, ""},
			badInput{v.verb + ": no cluster of that form", post, "/v2/clusters/x/" + v.verb, `{}`, 404, ""},
			badInput{v.verb + ": preview while busy", post, "/v2/previews", `{"kind":"` + v.kind + `","clusterId":"2","request":{}}`, 409, ""},
			badInput{v.verb + ": preview of no cluster", post, "/v2/previews", `{"kind":"` + v.kind + `","clusterId":"999"}`, 404, ""})
		at(v.verb+": unknown policy", v.verb, v.kind, `{"onFailure":"cry"}`, 400, "onFailure")
		at(v.verb+": policy is a list", v.verb, v.kind, `{"onFailure":[]}`, 400, "onFailure")
		at(v.verb+": fields in a list", v.verb, v.kind, `{"providerFields":[]}`, 400, "providerFields")
		if v.verb != "upgrade" {
			cases = append(cases, badInput{v.verb + ": empty", post, calm + "/" + v.verb, ``, 400, ""})
		}
	}
	for _, c := range []struct {
		name, verb, body string
		field            string
	}{
		{"nothing", "expand", `{}`, "numMachines"},
		{"in words", "expand", `{"numMachines":"many"}`, "numMachines"},
		{"half a machine", "expand", `{"numMachines":4.5}`, "numMachines"},
		{"beyond all integers", "expand", `{"numMachines":99999999999999999999}`, "numMachines"},
		{"to what it is", "expand", `{"numMachines":3}`, "numMachines"},
		{"to fewer", "expand", `{"numMachines":2}`, "numMachines"},
		{"more than the installation allows", "expand", `{"numMachines":51}`, "numMachines"},
		{"more than the template allows", "expand", `{"numMachines":6}`, ""},
		{"nothing", "shrink", `{}`, "numMachines"},
		{"to none", "shrink", `{"numMachines":0}`, "numMachines"},
		{"to what it is", "shrink", `{"numMachines":3}`, "numMachines"},
		{"to more", "shrink", `{"numMachines":4}`, "numMachines"},
		{"to too few", "shrink", `{"numMachines":1}`, ""},
		{"number and nodes", "shrink", `{"numMachines":2,"nodes":["x"]}`, "nodes"},
		{"no node of that id", "shrink", `{"nodes":["x"]}`, "nodes"},
		{"nodes in a text", "shrink", `{"nodes":"x"}`, "nodes"},
		{"a node that is an object", "shrink", `{"nodes":[{}]}`, "nodes[0]"},
		{"nothing", "remove-services", `{}`, "services"},
		{"none", "remove-services", `{"services":[]}`, "services"},
		{"a text", "remove-services", `{"services":"web"}`, "services"},
		{"NUL", "remove-services", `{"services":["\u0000"]}`, "services[0]"},
		{"what is not there", "remove-services", `{"services":["ghost"]}`, ""},
		{"all", "remove-services", `{"services":["web","balancer"]}`, ""},
		{"nothing is newer", "upgrade", `{}`, "services"},
		{"nothing of these is newer", "upgrade", `{"services":["web"]}`, "services"},
		{"services in a text", "upgrade", `{"services":"web"}`, "services"},
		{"a batch of none", "upgrade", `{"batch":0}`, "batch"},
		{"a batch in words", "upgrade", `{"batch":"all"}`, "batch"},
		{"fewer than none up", "upgrade", `{"minHealthy":-1}`, "minHealthy"},
		{"nothing", "resize", `{}`, "hardwaretype"},
		{"a list", "resize", `{"hardwaretype":[]}`, "hardwaretype"},
		{"what it has", "resize", `{"hardwaretype":"small"}`, "hardwaretype"},
		{"a batch of none", "resize", `{"hardwaretype":"small","batch":0}`, "batch"},
		{"nothing", "repair", `{}`, "nodes"},
		{"no nodes", "repair", `{"nodes":[]}`, "nodes"},
		{"no node of that id", "repair", `{"nodes":["00000000-0000-0000-0000-000000000000"]}`, "nodes"},
		{"no such way", "repair", `{"nodes":["00000000-0000-0000-0000-000000000000"],"how":"explode"}`, "how"},
		{"a way in a list", "repair", `{"nodes":["00000000-0000-0000-0000-000000000000"],"how":["reboot"]}`, "how"},
		{"services of a reboot", "repair", `{"nodes":["00000000-0000-0000-0000-000000000000"],"how":"reboot","services":["web"]}`, "services"},
		{"services of a replacement", "repair", `{"nodes":["00000000-0000-0000-0000-000000000000"],"services":["web"]}`, "services"},
		{"dead and restarted", "repair", `{"nodes":["00000000-0000-0000-0000-000000000000"],"how":"restart","dead":["00000000-0000-0000-0000-000000000000"]}`, "dead"},
		{"undo", "repair", `{"nodes":["\u0000"]}`, "nodes[0]"},
	} {
		kind := c.verb
		if kind == "remove-services" {
			kind = "remove_services"
		}
		at(c.verb+": "+c.name, c.verb, kind, c.body, 400, c.field)
	}
	at("upgrade: no such service", "upgrade", "upgrade", `{"services":["ghost"]}`, 404, "services")
	at("resize: no such type", "resize", "resize", `{"hardwaretype":"huge"}`, 404, "hardwaretype")
	at("resize: no such service", "resize", "resize", `{"hardwaretype":"small","services":["ghost"]}`, 404, "services")
	runBadInputs(t, cases)
}
