package clusters_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// fleetOf works out a fleet preview as an administrator.
func (b *bundle) fleetOf(in clusters.FleetInput) clusters.FleetPreview {
	b.t.Helper()
	p, err := b.clusters.FleetPreview(b.ctx, b.admin(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func updateAll(drafts ...loom.Entry) clusters.FleetInput {
	in := clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}}
	for _, e := range drafts {
		in.Drafts = append(in.Drafts, clusters.Draft{Kind: kindOfEntry(e), Entry: e})
	}
	return in
}

func kindOfEntry(e loom.Entry) loom.EntityKind {
	switch e.(type) {
	case *loom.Template:
		return loom.KindTemplate
	case *loom.Service:
		return loom.KindService
	case *loom.HardwareType:
		return loom.KindHardwareType
	default:
		return loom.KindImageType
	}
}

// effects are "effect code" of each cluster.
func effects(p clusters.FleetPreview) map[loom.ClusterID]string {
	found := map[loom.ClusterID]string{}
	for _, g := range p.Groups {
		for _, m := range g.Members {
			found[m.ID] = strings.TrimSpace(string(g.Effect) + " " + g.Code)
		}
	}
	return found
}

// TestFleetEffects: an edit that is not saved has the effect on each cluster that its kind and the
// cluster's state call for.
func TestFleetEffects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	active, protected := b.made(3), b.made(2)
	b.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(protected))
	busy := b.create(b.ana(), 2).Cluster
	site := b.newestTemplate()
	linked := site
	linked.Links = append(slices.Clone(site.Links), loom.Link{Label: "Docs", URL: "http://docs/"})
	small := site
	small.Constraints.Size.Max = 2
	const word = "impossible "
	work := role("web")
	work.Provisioner.Actions = maps.Clone(work.Provisioner.Actions)
	work.Provisioner.Actions[loom.ActionConfigure] = loom.ServiceAction{Type: work.Provisioner.Actions[loom.ActionStart].Type, Fields: map[string]string{"script": "other.sh"}}
	described := role("web")
	described.Description = "Described."
	flavor := &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "s9", "cost": "0.9"}}}
	lonely := service("lonely", nil)
	for name, c := range map[string]struct {
		drafts []loom.Entry
		want   [3]string // active, protected, busy
	}{
		"nothing":      {nil, [3]string{"unaffected", "unaffected", word + "busy"}},
		"link":         {[]loom.Entry{&linked}, [3]string{"in_place", "in_place", word + "busy"}},
		"description":  {[]loom.Entry{described}, [3]string{"in_place", "in_place", word + "busy"}},
		"work":         {[]loom.Entry{work}, [3]string{"restart", "restart", word + "busy"}},
		"flavor":       {[]loom.Entry{flavor}, [3]string{"replace", word + "protected", word + "busy"}},
		"size":         {[]loom.Entry{&small}, [3]string{word + "unsolvable", "in_place", word + "busy"}},
		"not used":     {[]loom.Entry{lonely}, [3]string{"unaffected", "unaffected", word + "busy"}},
		"work, flavor": {[]loom.Entry{work, flavor}, [3]string{"replace", word + "protected", word + "busy"}},
	} {
		p := b.fleetOf(updateAll(c.drafts...))
		got := effects(p)
		for i, id := range []loom.ClusterID{active, protected, busy} {
			if got[id] != c.want[i] {
				t.Errorf("%s: the effect on cluster %d is %q, want %q", name, i, got[id], c.want[i])
			}
		}
		if p.Clusters != 3 {
			t.Errorf("%s: %d clusters", name, p.Clusters)
		}
	}
	p := b.fleetOf(updateAll(flavor))
	if p.Entries[0].Version != 2 {
		t.Errorf("the draft has version %d, and saving gives it 2", p.Entries[0].Version)
	}
	if n := b.count(`SELECT count(*) FROM catalog_versions WHERE name = 'small' AND kind = 'hardwaretypes'`); n != 1 {
		t.Errorf("the fleet preview saved the draft: %d versions", n)
	}
	if p.Before == nil || p.After == nil || *p.After <= *p.Before {
		t.Errorf("the price goes from %v to %v an hour", p.Before, p.After)
	}
	p = b.fleetOf(clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Q: "id:" + active.String()})
	if p.Clusters != 1 || len(p.Groups) != 1 || p.Groups[0].Members[0].ID != active {
		t.Errorf("a search for one cluster finds %+v", p)
	}
}

// TestFleetPreviewIsForAdministrators, with words about what is wrong with a request.
func TestFleetPreviewIsForAdministrators(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.clusters.FleetPreview(b.ctx, b.ana(), updateAll())
	wantKind(t, err, loom.Forbidden)
	for field, in := range map[string]clusters.FleetInput{
		"resources":       {Change: clusters.PreviewInput{Kind: loom.ChangeRestart}, Files: true},
		"kind":            {Change: clusters.PreviewInput{Kind: loom.ChangeDelete}},
		"q":               {Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Q: "colour:red"},
		"entries":         {Change: clusters.PreviewInput{Kind: loom.ChangeRestart}, Drafts: []clusters.Draft{{Kind: loom.KindService, Entry: role("web")}}},
		"entries[0].kind": {Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Drafts: []clusters.Draft{{Kind: loom.KindProvider, Entry: &loom.Provider{Base: loom.Base{Name: "lab"}}}}},
		"entries[0]":      {Change: clusters.PreviewInput{Kind: loom.ChangeUpdate, Change: clusters.ChangeInput{Entries: []store.EntryVersion{{Kind: loom.KindService, Name: "web", Version: 7}}}}},
	} {
		_, err := b.clusters.FleetPreview(b.ctx, b.admin(), in)
		if e := loom.AsError(err); e == nil || len(e.Fields) != 1 || e.Fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// randomEdits are edits of one to three entries, as somebody would make them.
func randomEdits(r *rand.Rand, site loom.Template) []loom.Entry {
	var edits []loom.Entry
	if r.IntN(2) == 0 {
		switch r.IntN(3) {
		case 0:
			site.Links = append(slices.Clone(site.Links), loom.Link{Label: fmt.Sprint("Link ", r.IntN(100)), URL: "http://x/"})
		case 1:
			site.Constraints.Size.Max = 2 + r.IntN(4)
		default:
			site.Description = fmt.Sprint("Description ", r.IntN(100))
		}
		edits = append(edits, &site)
	}
	if r.IntN(2) == 0 {
		s := role([]string{"web", "db"}[r.IntN(2)])
		switch r.IntN(3) {
		case 0:
			s.Description = fmt.Sprint("Description ", r.IntN(100))
		case 1:
			s.Provisioner.Actions = maps.Clone(s.Provisioner.Actions)
			start := s.Provisioner.Actions[loom.ActionStart]
			s.Provisioner.Actions[loom.ActionConfigure] = loom.ServiceAction{Type: start.Type, Fields: map[string]string{"script": fmt.Sprint("edit-", r.IntN(100), ".sh")}}
		default:
			s.DefaultConfig = map[string]any{"extra": map[string]any{"n": r.IntN(100)}}
		}
		edits = append(edits, s)
	}
	if len(edits) == 0 || r.IntN(3) == 0 {
		edits = append(edits, &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: map[string]map[string]string{"lab": {
			"flavor": []string{"s1", "s2", "s3"}[r.IntN(3)], "cost": []string{"0.1", "0.2"}[r.IntN(2)]}}})
	}
	return edits
}

// TestFleetPreviewSaysWhatPreviewsSay: for random edits and staged files over a fleet, the fleet
// preview says of each cluster what a preview of it alone says once they are saved and released.
func TestFleetPreviewSaysWhatPreviewsSay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	var ids []loom.ClusterID
	for _, n := range []int{2, 3, 3, 5} {
		ids = append(ids, b.made(n))
	}
	b.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(ids[1]))
	b.db.MustExec(`UPDATE clusters SET config = config || '{"extra": {"n": "mine"}}' WHERE id = $1`, int64(ids[2]))
	for _, service := range []string{"web", "db"} {
		b.db.MustExec(`UPDATE nodes SET service_files = service_files || jsonb_build_object($1::text, jsonb_build_object('install', jsonb_build_object('shell/scripts/' || $1 || '.sh', 'one'))) WHERE $1 = ANY (services)`, service)
	}
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[clusters.Effect]int{}
	staged := 0
	for round := range 60 {
		edits := randomEdits(r, b.newestTemplate())
		in := updateAll(edits...)
		var brought []string
		if r.IntN(3) == 0 {
			if r.IntN(2) == 0 {
				edits, in = nil, updateAll()
			}
			in.Files = true
			for _, service := range []string{"web", "db"}[r.IntN(2):] {
				content := []string{"one", fmt.Sprint("round ", round)}[r.IntN(2)]
				b.stage("shell/scripts/"+service+".sh", round+1, content, true)
				if content != "one" {
					brought = append(brought, service)
				}
			}
		}
		text, err := json.Marshal(edits)
		if err != nil {
			t.Fatal(err)
		}
		text = fmt.Append(text, brought)
		fleet := b.fleetOf(in)
		for _, e := range edits {
			b.save(b.tenant, kindOfEntry(e), e)
		}
		b.sync()
		entries := fleet.Entries
		for _, service := range brought {
			if !slices.ContainsFunc(entries, func(e clusters.EntryVersion) bool { return e.Name == service }) {
				entries = append(entries, clusters.EntryVersion{Kind: loom.KindService, Name: service})
			}
		}
		of := map[loom.ClusterID]clusters.FleetGroup{}
		tasks := map[string]map[loom.TaskAction]int{}
		for _, g := range fleet.Groups {
			seen[g.Effect] += len(g.Members)
			for _, m := range g.Members {
				of[m.ID] = g
			}
		}
		sums := map[string]map[loom.TaskAction]int{}
		for _, id := range ids {
			g := of[id]
			if len(entries) == 0 {
				if g.Effect != clusters.EffectUnaffected {
					t.Errorf("round %d: nothing comes to cluster %s, and the fleet preview says %s", round, id, g.Effect)
				}
				continue
			}
			if len(edits) == 0 && g.Effect == clusters.EffectRestart {
				staged++
			}
			key := fmt.Sprint(g.Effect, g.Code, g.Reason, g.Services)
			v, err := b.clusters.Preview(b.ctx, b.admin(), clusters.PreviewInput{Kind: loom.ChangeUpdate, Cluster: id, Change: clusters.ChangeInput{Entries: entries}})
			switch {
			case err != nil && says(err, "up to date") == nil:
				if g.Effect != clusters.EffectUnaffected {
					t.Errorf("round %d: cluster %s is up to date and the fleet preview says %s\n%s", round, id, g.Effect, text)
				}
			case err != nil:
				if g.Effect != clusters.EffectImpossible {
					t.Errorf("round %d: cluster %s: %v, and the fleet preview says %s\n%s", round, id, err, g.Effect, text)
				}
				if e := loom.AsError(err); e.Unsat != nil && !strings.Contains(g.Reason, e.Unsat.Reasons[0].Message) {
					t.Errorf("round %d: the reason is %q, want %q", round, g.Reason, e.Unsat.Reasons[0].Message)
				}
			default:
				if (g.Effect == clusters.EffectReplace) != (v.NodesReplaced > 0) || g.Effect == clusters.EffectImpossible || g.Effect == clusters.EffectUnaffected {
					t.Errorf("round %d: cluster %s gets %d machines, and the fleet preview says %s\n%s", round, id, v.NodesReplaced, g.Effect, text)
				}
				if tasks[key] == nil {
					tasks[key] = map[loom.TaskAction]int{}
				}
				for action, n := range v.ByAction {
					tasks[key][action] += n
				}
				sums[key] = g.Tasks
			}
		}
		for key, want := range tasks {
			if !maps.Equal(sums[key], want) {
				t.Errorf("round %d: group %s has tasks %v, the previews have %v\n%s", round, key, sums[key], want, text)
			}
		}
		if r.IntN(4) == 0 { // some clusters move on
			if _, err := b.begin(loom.ChangeUpdate, ids[r.IntN(len(ids))], clusters.ChangeInput{}); err == nil {
				b.runTasks("")
			}
		}
	}
	if staged == 0 {
		t.Error("no staged file restarted anything by itself")
	}
	for _, e := range clusters.Effects {
		if seen[e] == 0 {
			t.Errorf("no edit had the effect %s: %v", e, seen)
		}
	}
}

// TestFleetPreviewOfStagedFiles: what is staged reaches the clusters whose services ran another
// content of it, and brings nothing else; without it the preview is about files in use.
func TestFleetPreviewOfStagedFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, _ := b.scripted()
	files := updateAll()
	files.Files = true
	want := func(when string, in clusters.FleetInput, effect clusters.Effect, services ...string) clusters.FleetPreview {
		t.Helper()
		p := b.fleetOf(in)
		if len(p.Groups) != 1 || p.Groups[0].Effect != effect || !slices.Equal(p.Groups[0].Services, services) {
			t.Fatalf("%s: %+v", when, p.Groups)
		}
		return p
	}
	want("nothing is staged", files, clusters.EffectUnaffected)
	b.stage("shell/scripts/web.sh", 2, "web one", true)
	want("the same content is staged", files, clusters.EffectUnaffected)
	b.stage("shell/scripts/web.sh", 3, "web three", true)
	b.stage("shell/scripts/other.sh", 1, "other", true)
	b.file("shell/scripts/db.sh", 2, "db two", false)
	linked := b.newestTemplate()
	linked.Links = append(slices.Clone(linked.Links), loom.Link{Label: "Docs", URL: "http://docs/"})
	b.save(b.tenant, loom.KindTemplate, &linked)
	p := want("another content is staged", files, clusters.EffectRestart, "web")
	if len(p.Files) != 2 || p.Files[1].Name != "web.sh" || p.Files[1].Version != 3 || len(p.Entries) != 0 {
		t.Errorf("files %+v, entries %+v", p.Files, p.Entries)
	}
	for _, line := range []string{"- file other.sh v1", "- file web.sh v3", "| restart | web | 1: "} {
		if !strings.Contains(p.Markdown(), line) {
			t.Errorf("the Markdown lacks %q: %s", line, p.Markdown())
		}
	}
	want("what is staged is not asked for", updateAll(), clusters.EffectInPlace)
	db := role("db")
	db.Description = "Described."
	files.Drafts = updateAll(db).Drafts
	want("with a draft", files, clusters.EffectRestart, "web")
	b.sync()
	v := b.previewOf(loom.ChangeUpdate, id, clusters.ChangeInput{Entries: []clusters.EntryVersion{{Kind: loom.KindService, Name: "web"}}})
	if !maps.Equal(v.ByAction, p.Groups[0].Tasks) {
		t.Errorf("the preview after the release has tasks %v, the fleet preview said %v", v.ByAction, p.Groups[0].Tasks)
	}
	files.Drafts = nil
	want("all is released", files, clusters.EffectUnaffected)
}

// TestFleetMarkdown: names are escaped, long lists are cut, and the text has a bound.
func TestFleetMarkdown(t *testing.T) {
	t.Parallel()
	p := clusters.FleetPreview{Clusters: 1, Counts: map[clusters.Effect]int{clusters.EffectRestart: 1}, Groups: []clusters.FleetGroup{
		{Effect: clusters.EffectRestart, Services: []string{"a|b"}, Members: []clusters.FleetMember{{ID: 1, Name: "*x*\n<b>"}}}}}
	if text := p.Markdown(); !strings.Contains(text, `| restart | a\|b | 1: \*x\* \<b\> |`) {
		t.Error(text)
	}
	many := clusters.FleetPreview{Clusters: 60_000, Counts: map[clusters.Effect]int{clusters.EffectImpossible: 60_000}}
	for n := range 1000 {
		many.Entries = append(many.Entries, store.EntryVersion{Kind: loom.KindService, Name: strings.Repeat("_", 255), Version: 1})
		g := clusters.FleetGroup{Effect: clusters.EffectImpossible, Reason: fmt.Sprint("Reason ", n)}
		for i := range 60 {
			g.Members = append(g.Members, clusters.FleetMember{ID: loom.ClusterID(i), Name: "cluster"})
		}
		many.Groups = append(many.Groups, g)
	}
	text := many.Markdown()
	if n := len([]rune(text)); n > 60_000 {
		t.Errorf("%d characters", n)
	}
	for _, want := range []string{"and 950 more", "and 10 more", "more groups are left out."} {
		if !strings.Contains(text, want) {
			t.Errorf("the Markdown lacks %q", want)
		}
	}
	if text := (&clusters.FleetPreview{}).Markdown(); !strings.Contains(text, "No clusters are affected.") {
		t.Error(text)
	}
}
