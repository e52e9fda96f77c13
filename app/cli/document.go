package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"loom/app/lenient"
	"loom/app/loom"
)

// document is the input of a subcommand.
type document struct {
	File string `arg:"" optional:"" help:"The input; “-” or nothing for standard input."`
}

// read returns the input and its name for messages.
func (d document) read(in io.Reader) (body []byte, name string, err error) {
	name = "standard input"
	if d.File != "" && d.File != "-" {
		name = d.File
		body, err = os.ReadFile(name)
	} else {
		body, err = io.ReadAll(in)
	}
	if err != nil {
		return nil, name, &exitStatus{exitUsage, fmt.Errorf("read %s: %w", name, err)}
	}
	return body, name, nil
}

// readAs reads a document with what read makes of its object. Errors end the
// command and name line and column of every mistake.
func readAs[T any](body []byte, name string, read func(r *questionReader) T) (T, error) {
	var answer T
	o, err := lenient.Read(body)
	if err != nil {
		return answer, &exitStatus{exitUsage, fmt.Errorf("%s: %w", name, placed(body, err))}
	}
	r := questionReader{o: o}
	answer = read(&r)
	errs := append(slices.Clone(o.Errors()), r.errs...)
	if len(errs) == 0 {
		return answer, nil
	}
	return answer, &exitStatus{exitUsage, fmt.Errorf("%s: %w", name,
		&loom.Error{Kind: loom.Invalid, Message: "The input cannot be read.", Fields: withPlaces(body, errs)})}
}

// readNodes reads the nodes of a cluster, in the order of their numbers. Those without
// a number get the next free ones in the order of their ids, numbers in them
// counted; known holds the numbers of ids that were read before.
func readNodes(o *lenient.Object, known map[string]int) []loom.Node {
	var nodes []loom.Node
	ids, taken := map[string]bool{}, map[int]string{}
	for id, n := range known {
		taken[n] = id
	}
	given := map[string]bool{}
	o.EachOf("nodes", func(_ int, n *lenient.Object) {
		node := loom.Node{ID: loom.NodeID(n.Text("id")), Number: n.Int("nodenum"), Hostname: n.Text("hostname"), Incarnation: n.Int("incarnation"),
			HardwareType: n.Text("hardwaretype"), ImageType: n.Text("imagetype"), Services: distinctSorted(n.Texts("services")), Addresses: n.TextMap("ipaddresses")}
		id := string(node.ID)
		switch {
		case id == "":
			n.Fail("id", "Give the node an id of its own.")
		case ids[id]:
			n.Fail("id", "The id %s is given twice.", id)
		}
		ids[id] = true
		if n.Has("nodenum") {
			if other, is := taken[node.Number]; is && other != id {
				n.Fail("nodenum", "Node %s has the number %d already.", other, node.Number)
			}
			taken[node.Number], given[id] = id, true
		} else if number, is := known[id]; is {
			node.Number, given[id] = number, true
		}
		nodes = append(nodes, node)
	})
	slices.SortStableFunc(nodes, func(a, b loom.Node) int { return compareNatural(string(a.ID), string(b.ID)) })
	next := loom.FirstNodeNumber
	for i := range nodes {
		id := string(nodes[i].ID)
		for ; !given[id] && taken[next] != ""; next++ {
		}
		if !given[id] {
			nodes[i].Number, taken[next] = next, id
		}
		if known != nil {
			known[id] = nodes[i].Number
		}
	}
	slices.SortStableFunc(nodes, func(a, b loom.Node) int { return cmp.Compare(a.Number, b.Number) })
	return nodes
}
