package clusters

import (
	"net/url"
	"slices"

	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/ui"
)

// addressChoice is which address of its nodes a cluster's page names in commands and
// texts: that for access unless it says otherwise.
type addressChoice string

const (
	addressAccess addressChoice = ""
	addressBind   addressChoice = "bind"
	// addressParam is the choice in a query.
	addressParam = "address"
)

// readAddressChoice reads the choice; what is none is that for access.
func readAddressChoice(q url.Values) addressChoice {
	if addressChoice(q.Get(addressParam)) == addressBind {
		return addressBind
	}
	return addressAccess
}

// of is the chosen address of a node, the other one where it has only that, and ""
// before it has any.
func (c addressChoice) of(n loom.Node) string {
	access, bind := n.Addresses[loom.AccessV4], n.Addresses[loom.BindV4]
	if c == addressBind && bind != "" || access == "" {
		return bind
	}
	return access
}

// addresses are those of a node, that for access first.
func addresses(n loom.Node) []string {
	access, bind := addressAccess.of(n), addressBind.of(n)
	switch {
	case access == "":
		return nil
	case access == bind:
		return []string{access}
	}
	return []string{access, bind + " (internal)"}
}

// addressChoices are links to the same page with the one or the other address; without
// options where that makes no difference.
func addressChoices(nodes []loom.Node, present addressChoice, href func(addressChoice) string) clusterview.Choices {
	m := clusterview.Choices{Label: "Address"}
	differs := func(n loom.Node) bool { return n.State != loom.NodeDeleted && addressAccess.of(n) != addressBind.of(n) }
	if !slices.ContainsFunc(nodes, differs) {
		return m
	}
	m.Options = []ui.Tab{{Label: "access", Href: href(addressAccess), Current: present == addressAccess}, {Label: "bind (internal)", Href: href(addressBind), Current: present == addressBind}}
	return m
}
