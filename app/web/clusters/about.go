package clusters

import (
	"encoding/json"
	"net/url"
	"strings"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/ui"
)

// labelLines writes labels as loom.ReadLabels reads them.
func labelLines(all map[string]string) string { return strings.Join(loom.LabelTexts(all), "\n") }

// clusterWriting is what stands in the form for description and labels: both texts, what
// they were when the form was made, and against what somebody else wrote meanwhile.
type clusterWriting struct {
	description, labels         string
	seenDescription, seenLabels string
	// known says that the form tells what was seen.
	known   bool
	clash   string
	changes []ui.ChangeModel
}

func writtenNow(v clusters.ClusterView) clusterWriting {
	labels := labelLines(v.Labels)
	return clusterWriting{description: v.Description, labels: labels, seenDescription: v.Description, seenLabels: labels, known: true}
}

func readWriting(form url.Values) clusterWriting {
	lines := func(name string) string { return strings.ReplaceAll(form.Get(name), "\r\n", "\n") }
	return clusterWriting{
		description: strings.TrimSpace(lines(clusterview.FieldDescription)), labels: lines(clusterview.FieldLabels),
		seenDescription: lines(clusterview.FieldSeenDescription), seenLabels: lines(clusterview.FieldSeenLabels),
		known: form.Has(clusterview.FieldSeenDescription) && form.Has(clusterview.FieldSeenLabels),
	}
}

// input is what the texts change in what was seen. Texts that nobody touched change
// nothing, also where they cannot be read back. errs say which lines are no labels.
func (c clusterWriting) input(v clusters.ClusterView) (in clusters.EditInput, errs []loom.FieldError) {
	if !c.known || c.description != strings.TrimSpace(c.seenDescription) {
		in.Description = &c.description
	}
	if !c.known || strings.TrimSpace(c.labels) != strings.TrimSpace(c.seenLabels) {
		in.Labels, errs = loom.ReadLabels(c.labels)
	}
	if c.known {
		in.Seen = &clusters.EditedText{Description: c.seenDescription}
		if in.Seen.Labels = v.Labels; c.seenLabels != labelLines(v.Labels) {
			in.Seen.Labels, _ = loom.ReadLabels(c.seenLabels)
		}
		if c.seenDescription == strings.ReplaceAll(v.Description, "\r\n", "\n") {
			in.Seen.Description = v.Description
		}
	}
	return in, errs
}

// against makes the texts an answer to what somebody else stored meanwhile: it says what
// they would change in that, and saving them now replaces it.
func (c clusterWriting) against(stored clusters.EditedText) clusterWriting {
	mine, _ := loom.ReadLabels(c.labels)
	tree := func(description string, labels map[string]string) any {
		text, err := json.Marshal(map[string]any{"description": description, "labels": labels})
		if err != nil {
			return nil // texts are always JSON
		}
		return page.ParseTree(text)
	}
	if mine == nil {
		mine = map[string]string{}
	}
	if stored.Labels == nil {
		stored.Labels = map[string]string{}
	}
	if c.description == strings.TrimSpace(c.seenDescription) {
		c.description = stored.Description
	}
	if strings.TrimSpace(c.labels) == strings.TrimSpace(c.seenLabels) {
		c.labels, mine = labelLines(stored.Labels), stored.Labels
	}
	c.changes = page.ChangesOf(catalog.Differences(tree(stored.Description, stored.Labels), tree(c.description, mine)))
	c.seenDescription, c.seenLabels = stored.Description, labelLines(stored.Labels)
	c.clash = "Somebody else saved a change while you were editing. Copy what you need from theirs, keep yours, or take theirs."
	return c
}
