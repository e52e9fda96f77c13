package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// catalogFolder names the folder of an outside catalog; noCatalog says that this host has none.
const (
	catalogFolder = "LOOM_TEST_CATALOG"
	noCatalog     = "none"
)

// Catalog returns the folder of a catalog that is no part of Loom: the one that
// LOOM_TEST_CATALOG names, else shared/data/catalog beside the repository. Without one it
// skips the test as Skip does. LOOM_TEST_CATALOG=none says that this host has none, and skips
// everywhere.
func Catalog(t testing.TB) string {
	t.Helper()
	named := os.Getenv(catalogFolder)
	if named == noCatalog {
		t.Skipf("it needs an outside catalog, and %s is “%s”", catalogFolder, noCatalog)
	}
	folder, ok := catalogAt(named)
	if !ok {
		Skip(t, "there is no catalog at %s; name one in %s, or “%s”", folder, catalogFolder, noCatalog)
	}
	return folder
}

// catalogAt returns the folder to look in and whether a catalog is there.
func catalogAt(named string) (string, bool) {
	folder := named
	if folder == "" {
		root, err := os.Getwd()
		for err == nil && root != filepath.Dir(root) {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			root = filepath.Dir(root)
		}
		folder = filepath.Join(filepath.Dir(root), "shared", "data", "catalog")
	}
	for _, kind := range []string{"services", "clustertemplates"} {
		if _, err := os.Stat(filepath.Join(folder, kind)); err != nil {
			return folder, false
		}
	}
	return folder, true
}
