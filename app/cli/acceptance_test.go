package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// proof says what shows that an acceptance check of the portals holds.
type proof struct {
	check int
	what  string
	// tests are "folder TestName", the folder as seen from the root.
	tests []string
	// measured are the parts of `loom bench` that give its figures.
	measured []string
}

// acceptance lists the promises of the portals, with the tests that keep them.
var acceptance = []proof{
	{1, "sign-in, create by a preview, refresh, log, lease and delete without scripts",
		[]string{"app/cli TestBrowserNoScript"}, nil},
	{2, "an unsatisfiable form names rules and suggestions that yield “Fits”",
		[]string{"app/web TestEveryClassOfRefusalOffersAWayOut", "app/web TestSuggestionsWithoutScripts", "solver TestProvidersAreSuggestedForGapsInTheirMaps", "solver TestEveryRefusalHasReasonsAndSuggestions", "solver TestSuggestionsForClusters", "solver TestSuggestionsForMachines"}, nil},
	{3, "apply after a catalog change is refused and shows the difference",
		[]string{"app/web TestStalePreviewShowsTheNewOne", "app/clusters TestApplyIsRefusedWhenTheCatalogMoved"}, nil},
	{4, "a restarted server and a killed provisioner lose and double nothing",
		[]string{"app/web TestOpenLogGoesOnAfterARestart", "app/cli TestBrowserAfterRestart", "app/cli TestKilledProcesses", "jobs/work TestKilledProvisionersTasksRunElsewhere", "app/live TestCursorBringsWhatWasMissed"}, nil},
	{5, "long logs open at their tail and can be read while they grow",
		[]string{"app/web TestLongLogOpensAtItsTail", "app/web TestLongLogs", "app/web TestLogIsReadInPieces", "app/api TestFollowLog"}, []string{"pages"}},
	{6, "plans of 1,000 tasks are grouped and reached by keyboard",
		[]string{"app/web TestEveryTaskOfALargePlanIsReached", "app/web TestTasksOfALargePlanByKeyboard", "planner/draw TestDrawGroups", "planner/draw TestPicturesHaveAnEnd", "app/clusters TestLargeCluster", "app/cli TestBrowserKeyboard"}, []string{"pages"}},
	{7, "lists of 10,000 clusters",
		[]string{"app/clusters TestListOfManyClusters", "app/web TestPagesMakeABoundedNumberOfQueries"}, []string{"http", "pages"}},
	{8, "no fault of accessibility on any page; the flows of check 1 by keyboard alone",
		[]string{"app/cli TestEveryPage", "app/cli TestBrowserKeyboard", "app/cli TestBrowserFaults", "app/web TestStatesOfPagesAreForEverybody"}, nil},
	{9, "nothing breaks the content security policy",
		[]string{"app/testkit/browser TestRefusedContentFailsTheTest", "app/cli TestEveryPage", "app/cli TestBrowserKeyboard", "app/cli TestBrowserNoScript"}, nil},
	{10, "every page with an object offers JSON and a curl line that gives it",
		[]string{"app/web TestEveryObjectHasItsJSON"}, nil},
	{11, "two people who edit one template: the second sees the comparison",
		[]string{"app/web TestConflict", "app/catalog TestVersionsAreNumberedAndGuarded"}, nil},
	{12, "no secret in pages, JSON, logs, audit entries, addresses or exports",
		[]string{"app/cli TestNoSecretComesToLight", "app/cli TestWithoutPageIsTrue", "app/web TestRevealIsShownOnceAndAudited"}, nil},
}

// TestAcceptance keeps the table true: all checks are in it, and what they name
// exists.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	bench, err := fs.ReadFile(root, "app/lab/bench.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	for i, p := range acceptance {
		if p.check != i+1 || p.what == "" || len(p.tests) == 0 {
			t.Errorf("row %d is check %d (%s) with %d tests", i+1, p.check, p.what, len(p.tests))
		}
		for _, named := range p.tests {
			folder, name, _ := strings.Cut(named, " ")
			if known[folder] == nil {
				known[folder] = testsOf(t, root, folder)
			}
			if !known[folder][name] {
				t.Errorf("check %d names %s, which folder %s does not have", p.check, name, folder)
			}
		}
		for _, part := range p.measured {
			if !strings.Contains(string(bench), `{"`+part+`", `) {
				t.Errorf("check %d names the part %q of loom bench, which does not exist", p.check, part)
			}
		}
	}
	if len(acceptance) != 12 {
		t.Errorf("%d checks, not 12", len(acceptance))
	}
}

// testsOf returns the names of the tests in a folder, whatever their build tags.
func testsOf(t *testing.T, root fs.FS, folder string) map[string]bool {
	t.Helper()
	files, err := fs.Glob(root, path.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		source, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}
