package shell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// flatten turns a JSON document into lines "path<TAB>type<TAB>value", one for
// each value that is no object and no list, for functions.sh. Objects come by
// key, lists by index. Backslash, tab and line ends are escaped by a backslash
// in values and in keys.
func flatten(document []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber() // numbers as written
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("flatten the task: %w", err)
	}
	var out bytes.Buffer
	flattenValue(&out, "", value)
	return out.Bytes(), nil
}

func flattenValue(out *bytes.Buffer, path string, value any) {
	kind, text := "", ""
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			flattenValue(out, path+"/"+escape(key), v[key])
		}
		return
	case []any:
		for i, element := range v {
			flattenValue(out, path+"/"+strconv.Itoa(i), element)
		}
		return
	case string:
		kind, text = "string", escape(v)
	case json.Number:
		kind, text = "number", v.String()
	case bool:
		kind, text = "boolean", strconv.FormatBool(v)
	case nil:
		kind, text = "null", "null"
	}
	fmt.Fprintf(out, "%s\t%s\t%s\n", path, kind, text)
}

var escaper = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", "")

func escape(s string) string { return escaper.Replace(s) }
