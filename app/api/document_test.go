package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"loom/app/api/wire/schema"
)

type fields = map[string]any

// makeDocument describes routes as OpenAPI 3.1 (spec.openapis.org).
func makeDocument(routes []route) ([]byte, error) {
	schemas, err := schema.All()
	if err != nil {
		return nil, err
	}
	paths := fields{}
	for _, rt := range routes {
		item, _ := paths[rt.path].(fields)
		if item == nil {
			item = fields{}
			paths[rt.path] = item
		}
		item[strings.ToLower(rt.method)] = rt.operation()
	}
	var chapters []any
	for _, t := range tags {
		chapters = append(chapters, fields{"name": t.name, "description": t.help})
	}
	doc := fields{
		"openapi": "3.1.0",
		"info": fields{
			"title":       "Loom",
			"version":     "2",
			"description": "Clusters of machines on demand. Success is always 200; errors are application/problem+json. Times are milliseconds since 1970.",
			"license":     fields{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"security": []any{fields{"token": []any{}}, fields{"key": []any{}}, fields{"session": []any{}}},
		"tags":     chapters,
		"paths":    paths,
		"components": fields{
			"schemas": schemas,
			"securitySchemes": fields{
				"token":   fields{"type": "http", "scheme": "bearer"},
				"key":     fields{"type": "apiKey", "in": "header", "name": headerKey, "description": "The same token."},
				"session": fields{"type": "apiKey", "in": "cookie", "name": "__Host-loom", "description": "Browsers that are signed in."},
			},
			"responses": fields{"Problem": fields{
				"description": "What is wrong, and what helps",
				"content":     fields{"application/problem+json": fields{"schema": schemaOf("Problem")}},
			}},
		},
	}
	body, err := json.MarshalIndent(doc, "", "  ")
	return append(body, '\n'), err
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// operation describes one route.
func (rt *route) operation() fields {
	var params []any
	for _, m := range placeholder.FindAllStringSubmatch(rt.path, -1) {
		p := fields{"name": m[1], "in": "path", "required": true, "schema": fields{"type": "string"}}
		if help := placeHelp(rt.path, m[1]); help != "" {
			p["description"] = help
		}
		params = append(params, p)
	}
	for _, p := range rt.params() {
		params = append(params, fields{"name": p.name, "in": "query", "description": p.help, "schema": fields{"type": p.kind}})
	}
	if rt.once {
		params = append(params, fields{"name": "Idempotency-Key", "in": "header", "schema": fields{"type": "string", "minLength": 1, "maxLength": 255},
			"description": "The same request with the same key gives the first answer again, for 24 hours. Of one above 64 KiB, or behind 4 MiB of them, it gives the short members with the header Idempotency-Shortened; read the rest at its id."})
	}
	if rt.matches {
		params = append(params, fields{"name": "If-Match", "in": "header", "schema": fields{"type": "string"},
			"description": "The version that you started from in quotes, as the ETag of GET gives it; a newer one answers 409."})
	}
	success := fields{"description": "Done"}
	if content := rt.content(); len(content) > 0 {
		success["content"] = content
	}
	if rt.begins {
		success["headers"] = fields{headerOperation: fields{"schema": fields{"type": "string"}, "description": "Id of the operation that this began, such as 00000042-003."}}
	}
	if rt.findings {
		success["headers"] = fields{
			"Loom-Findings": fields{"schema": fields{"type": "integer", "minimum": 0}, "description": rt.findingsHelp()},
			"Link":          fields{"schema": fields{"type": "string"}, "description": "Where the findings are listed, with rel=\"describedby\"; not sent when there are none."},
		}
	}
	op := fields{
		"operationId": operationID(rt.method, rt.path),
		"summary":     rt.summary,
		"tags":        []any{tagOf(rt.path)},
		"responses":   fields{strconv.Itoa(cmp.Or(rt.success, http.StatusOK)): success, "default": fields{"$ref": "#/components/responses/Problem"}},
	}
	if rt.open {
		op["security"] = []any{}
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if rt.body != "" {
		name, optional := strings.CutSuffix(rt.body, "?")
		media, form := mediaJSON, schemaOf(name)
		if name == "bytes" {
			media, form = mediaBytes, fields{}
		}
		op["requestBody"] = fields{"required": !optional, "content": fields{media: fields{"schema": form}}}
	}
	return op
}

func (rt *route) findingsHelp() string {
	if rt.method == http.MethodDelete {
		return "How many other entries of the catalog name what is gone now."
	}
	return "How much of what was sent would not work; it is stored all the same."
}

func (rt *route) content() fields {
	content := fields{}
	media := rt.media
	if len(media) == 0 && rt.answer != "" {
		media = []string{mediaJSON}
	}
	for _, m := range media {
		if m == mediaJSON {
			content[m] = fields{"schema": schemaOf(rt.answer)}
		} else {
			content[m] = fields{"schema": fields{"type": "string"}}
		}
	}
	return content
}

// schemaOf reads the short form of a schema that rows of the table use.
func schemaOf(name string) fields {
	if item, ok := strings.CutPrefix(name, "[]"); ok {
		return fields{"type": "array", "items": schemaOf(item)}
	}
	if item, ok := strings.CutPrefix(name, "{}"); ok {
		return fields{"type": "object", "additionalProperties": schemaOf(item)}
	}
	switch name {
	case "string":
		return fields{"type": "string"}
	case "object":
		return fields{"type": "object"}
	case "string|null":
		return fields{"type": []any{"string", "null"}}
	}
	return fields{"$ref": "#/components/schemas/" + name}
}

// operationID makes an id such as "getClustersIdOperationsN".
func operationID(method, path string) string {
	id := strings.ToLower(method)
	for _, part := range strings.FieldsFunc(strings.TrimPrefix(path, "/v2"), func(c rune) bool { return strings.ContainsRune("/{}.", c) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}
