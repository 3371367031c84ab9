// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source is one file of manifests. Name identifies it in errors and in the
// report.
type Source struct{ Name, Text string }

// Options fill in values that older versions read from the settings of the
// controller.
type Options struct {
	// Role and InstanceProfile are given to node classes that have neither. At
	// most one is set.
	Role, InstanceProfile string
}

// Result has the migrated files, in the order of the sources, and the report.
type Result struct {
	Files  []File
	Report Report
}

// File is a migrated source.
type File struct {
	Source
	Changed bool
}

// placeholder is the value of a required field that only a person can fill in.
const placeholder = "replace-me"

const (
	decisionMark = "migrate: "
	byHandMark   = "migrate, BY HAND: "
)

// object is one object of Kubernetes.
type object struct {
	doc  *document
	root *yaml.Node
	// as read
	group, version, kind, name string
	report                     *Report
	changed                    bool
}

// migration is one run over all sources.
type migration struct {
	options Options
	report  *Report
	objects []*object
	classes map[string]*object // EC2NodeClasses by name: converted and new ones
	kubelet []demand           // the kubelet configurations of NodePools
	schemas schemas
}

// Migrate rewrites the objects of older APIs in the sources. The error lists
// the problems of all files, each with file and line.
func Migrate(sources []Source, options Options) (Result, error) {
	var result Result
	m := &migration{options: options, report: &result.Report, classes: map[string]*object{}, schemas: schemas{}}
	var errs []error
	files := make([][]*document, len(sources))
	for i, source := range sources {
		files[i] = split(source.Name, source.Text)
		for _, d := range files[i] {
			if err := m.read(d); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) > 0 {
		return Result{}, errors.Join(errs...)
	}
	m.convert()
	for i, source := range sources {
		m.leftovers(source)
		var out strings.Builder
		for _, d := range files[i] {
			body, err := d.text()
			if err != nil {
				errs = append(errs, err)
			}
			out.WriteString(body)
		}
		text := out.String()
		result.Files = append(result.Files, File{Source{source.Name, text}, text != source.Text})
	}
	if len(errs) > 0 {
		return Result{}, errors.Join(errs...)
	}
	return result, nil
}

// read parses a document and adds its objects to the migration.
func (m *migration) read(d *document) error {
	if err := d.parse(); err != nil || d.tree == nil {
		return err
	}
	root := d.tree.Content[0]
	isList := strings.HasSuffix(text(root, "kind"), "List") && at(root, "items") != nil
	objects := func() []*object {
		if !isList {
			return []*object{m.newObject(d, root)}
		}
		var found []*object
		for _, item := range at(root, "items").Content {
			found = append(found, m.newObject(d, item))
		}
		return found
	}
	// An object that may be changed must not be shared by an alias.
	if slices.ContainsFunc(objects(), (*object).ours) {
		var err error
		if d.expanded, err = expand(root); err != nil {
			return fmt.Errorf("%s:%d: %w", d.file, d.line+root.Line, err)
		}
	}
	for _, o := range objects() {
		if o.ours() {
			if err := o.wellFormed(); err != nil {
				return err
			}
		}
		m.objects = append(m.objects, o)
	}
	return nil
}

// wellFormed returns an error if an object that has to be converted lacks the
// structure that all versions share.
func (o *object) wellFormed() error {
	if where, problem := malformed(o.root); problem != "" {
		return fmt.Errorf("%s:%d: %s: %s", o.doc.file, o.doc.line+where.Line, o, problem)
	}
	paths := []string{
		"metadata", "metadata.annotations", "spec", "spec.annotations", "spec.labels", "spec.template", "spec.template.spec", "spec.template.spec.kubelet",
		"spec.disruption", "spec.limits", "spec.kubeletConfiguration", "spec.consolidation", "spec.providerRef", "spec.provider", "spec.provider.metadataOptions",
		"spec.metadataOptions",
	}
	if o.kind == "Provisioner" {
		paths = append(paths, "spec.limits.resources")
	}
	for _, path := range paths {
		if n := at(o.root, strings.Split(path, ".")...); n != nil && n.Kind != yaml.MappingNode && n.ShortTag() != "!!null" {
			return fmt.Errorf("%s:%d: %s: %s: want a mapping", o.doc.file, o.doc.line+n.Line, o, path)
		}
	}
	return nil
}

func (m *migration) newObject(d *document, root *yaml.Node) *object {
	group, version, found := strings.Cut(text(root, "apiVersion"), "/")
	if !found {
		group, version = "", group
	}
	return &object{doc: d, root: root, group: group, version: version,
		kind: text(root, "kind"), name: text(root, "metadata", "name"), report: m.report}
}

const (
	coreGroup = "karpenter.sh"
	awsGroup  = "karpenter.k8s.aws"

	azureGroup = "karpenter.azure.com"
)

// ours reports whether the object is of a kind that this package converts, in
// any version.
func (o *object) ours() bool {
	switch o.group {
	case coreGroup:
		return slices.Contains([]string{"Provisioner", "Machine", "NodePool", "NodeClaim"}, o.kind)
	case awsGroup:
		return slices.Contains([]string{"AWSNodeTemplate", "EC2NodeClass"}, o.kind)
	case azureGroup:
		return o.kind == "AKSNodeClass"
	}
	return false
}

func (o *object) String() string {
	if o.name == "" {
		return o.kind
	}
	return o.kind + "/" + o.name
}

// convert converts all objects. Node classes come first, because pools move
// settings to them.
func (m *migration) convert() {
	for _, o := range m.objects {
		if o.ours() && o.group == awsGroup {
			m.convertClass(o)
			if _, twice := m.classes[o.name]; !twice {
				m.classes[o.name] = o
			}
		}
	}
	for _, o := range m.objects {
		switch {
		case o.ours() && o.group == coreGroup:
			m.convertCore(o)
		case o.ours() && o.group == azureGroup:
			o.convertAKS()
		}
	}
	m.settleKubelets()
	for _, o := range m.objects {
		o.renameKeys()
		o.stale()
		if o.ours() {
			o.check(m.schemas)
		}
		if o.changed {
			m.report.Objects++
		}
	}
}

func (m *migration) convertCore(o *object) {
	switch {
	case o.kind == "Provisioner" && o.version == "v1alpha5":
		m.convertProvisioner(o)
	case o.kind == "Machine" && o.version == "v1alpha5":
		m.convertMachine(o)
	case o.kind == "NodePool" && o.version == "v1beta1":
		m.convertPool(o)
	case o.kind == "NodePool" && o.version == "v1":
		m.takeAnnotatedKubelet(o)
	case o.kind == "NodeClaim" && o.version == "v1beta1":
		m.convertClaim(o)
	case o.version != "v1" || o.kind != "NodeClaim":
		o.unknownVersion()
	}
}

func (m *migration) convertClass(o *object) {
	switch {
	case o.kind == "AWSNodeTemplate" && o.version == "v1alpha1":
		m.convertTemplate(o)
	case o.kind == "EC2NodeClass" && o.version == "v1beta1":
		m.convertBetaClass(o)
	case o.kind == "EC2NodeClass" && o.version == "v1":
		o.dropCompatibility()
	default:
		o.unknownVersion()
	}
}

// convertAKS converts an AKSNodeClass. Its versions have the same fields.
func (o *object) convertAKS() {
	switch o.version {
	case "v1alpha2":
		o.become(azureGroup+"/v1beta1", o.kind)
	case "v1beta1":
	default:
		o.unknownVersion()
	}
}

// unknownVersion reports a version that the kind never had.
func (o *object) unknownVersion() {
	versions := map[string]string{"Provisioner": "v1alpha5", "Machine": "v1alpha5", "AWSNodeTemplate": "v1alpha1", "AKSNodeClass": "v1alpha2 and v1beta1"}[o.kind]
	if versions == "" {
		versions = "v1beta1 and v1"
	}
	o.askAt(o.root, "there is no %s of %s/%s, only of %s: correct apiVersion and run migrate again", o.kind, o.group, o.version, versions)
}

// become changes apiVersion and kind, and removes the fields that the API
// server maintains.
func (o *object) become(apiVersion, kind string) {
	was := o.group + "/" + o.version
	if o.kind != kind {
		was = o.kind + " of " + was
	}
	key := put(o.root, "apiVersion", o.reworded("apiVersion", apiVersion))
	put(o.root, "kind", o.reworded("kind", kind))
	o.decide(key, "was %s", was)
	take(o.root, "status")
	metadata := at(o.root, "metadata")
	for _, key := range []string{"creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid", "finalizers"} {
		take(metadata, key)
	}
	for _, name := range []string{
		"kubectl.kubernetes.io/last-applied-configuration",
		"karpenter.sh/provisioner-hash", "karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version",
		"karpenter.k8s.aws/nodetemplate-hash", "karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version",
		"karpenter.azure.com/aksnodeclass-hash", "karpenter.azure.com/aksnodeclass-hash-version",
	} {
		o.dropAnnotation(name, "")
	}
	o.dropCompatibility()
}

// reworded returns a copy of the scalar at a key with another value. It keeps
// the comments.
func (o *object) reworded(key, value string) *yaml.Node {
	if v := at(o.root, key); v != nil && v.Kind == yaml.ScalarNode {
		v.Value, v.Tag = value, "!!str"
		return v
	}
	return str(value)
}

// dropAnnotation removes an annotation of the object. why is the decision to
// record; with "", none is recorded.
func (o *object) dropAnnotation(name, why string) {
	annotations := at(o.root, "metadata", "annotations")
	key, _ := take(annotations, name)
	if key == nil {
		return
	}
	o.touch()
	if len(annotations.Content) == 0 {
		take(at(o.root, "metadata"), "annotations")
	}
	if why != "" {
		metadata, _ := find(o.root, "metadata")
		o.decide(metadata, "annotation %s removed: %s", name, why)
	}
}

// touch marks the object and its document as changed.
func (o *object) touch() {
	o.changed = true
	if o.doc.rewritten {
		return
	}
	o.doc.rewritten = true
	if o.doc.expanded {
		o.enter(0, "anchors and aliases of the document are written out", false)
	}
	root := o.doc.tree.Content[0]
	if root.Style&yaml.FlowStyle != 0 {
		plain(root)
	}
	blockify(root)
}

// decide records a decision about the field at the key.
func (o *object) decide(key *yaml.Node, format string, args ...any) {
	o.record(key, key.Line, false, fmt.Sprintf(format, args...))
}

// ask records a decision by hand about the field at the key.
func (o *object) ask(key *yaml.Node, format string, args ...any) {
	o.record(key, key.Line, true, fmt.Sprintf(format, args...))
}

// record writes a message above a key and into the report, where it refers to
// the line.
func (o *object) record(key *yaml.Node, line int, byHand bool, message string) {
	o.touch()
	mark := decisionMark
	if byHand {
		mark = byHandMark
	}
	comment(key, strings.Split(mark+message, "\n")...)
	if !slices.Contains([]string{"apiVersion", "metadata", "spec"}, key.Value) {
		message = key.Value + ": " + message
	}
	o.enter(line, message, byHand)
}

// askAt reports a decision by hand about an object that is not changed.
func (o *object) askAt(n *yaml.Node, format string, args ...any) {
	o.enter(n.Line, fmt.Sprintf(format, args...), true)
}

// enter adds the first line of a message to the report. Line 0, which new nodes
// have, means the line of the object.
func (o *object) enter(line int, message string, byHand bool) {
	message, _, _ = strings.Cut(message, "\n")
	if line == 0 {
		line = o.root.Line
	}
	o.report.Entries = append(o.report.Entries, Entry{File: o.doc.file, Line: o.doc.line + line, Object: o.String(),
		Text: strings.TrimSuffix(strings.TrimSuffix(message, "; it was:"), ":"), ByHand: byHand})
}

// drop removes a field that v1 does not have, and writes its text as a comment
// above another key.
func (o *object) drop(from *yaml.Node, field string, above *yaml.Node, why string) {
	key, value := take(from, field)
	if key == nil {
		return
	}
	o.touch()
	if value.Tag != "!!null" {
		o.record(above, key.Line, true, why+"; it was:\n"+asComment(mapping(field, clone(value))))
	}
}

// asComment returns the node as indented YAML, to be used in a comment.
func asComment(n *yaml.Node) string {
	blockify(n)
	out, err := render(n, style{indent: 2})
	if err != nil {
		return "  (cannot be shown)"
	}
	return "  " + strings.ReplaceAll(strings.TrimRight(out, "\n"), "\n", "\n  ")
}

// leftovers reports the decisions by hand of an earlier run that are still in
// the file.
func (m *migration) leftovers(source Source) {
	n := 0
	for line := range strings.Lines(source.Text) {
		n++
		if found := marker.FindStringSubmatch(strings.TrimRight(line, "\r\n")); found != nil {
			m.report.Entries = append(m.report.Entries, Entry{File: source.Name, Line: n, ByHand: true,
				Text: "left by an earlier run, remove the comment when it is done: " + found[1]})
		}
	}
}

// Joined returns the files as one YAML stream.
func Joined(files []File) string {
	var out strings.Builder
	for i, f := range files {
		if i > 0 {
			if !strings.HasSuffix(out.String(), "\n") {
				out.WriteString("\n")
			}
			if !strings.HasPrefix(f.Text, "---") {
				out.WriteString("---\n")
			}
		}
		out.WriteString(f.Text)
	}
	return out.String()
}
