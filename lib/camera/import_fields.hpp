#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

/// The syntax of other programs' calibration files, without the meaning.
namespace dic::camera {

/// Numbers in the order in which they stand in a text, separated by white space, commas, semicolons,
/// brackets or braces. Throws UsageError at anything else. where: names the text in the message.
std::vector<double> numbers_in(std::string_view text, std::string_view where);

/// The lines of a text without spaces at their ends, empty lines and what follows a '#'.
std::vector<std::string> lines_of(std::string_view text);

/// A name with numbers after it. Names are in lower case, and lack units, spaces and underscores.
using Fields = std::map<std::string, std::vector<double>>;

/// Lines "name,1.5" or "name;1.5;2". A line with a cell that is no finite number has no numbers.
Fields fields_of_table(std::string_view text);
/// The matrices and numbers at the top level of OpenCV's YAML.
Fields fields_of_yaml(std::string_view text);

/// An element of XML: its attributes by name, its own text, and its children in their order.
struct XmlElement {
  std::string name, text;
  std::map<std::string, std::string> attributes;
  std::vector<XmlElement> children;

  /// The attribute; empty if there is none.
  std::string attribute(const std::string& key) const;
  /// All elements of this name at any depth, in their order.
  std::vector<const XmlElement*> find(std::string_view wanted) const;
};
/// Parses elements, attributes, text and comments: no entities and no namespaces. The result is a nameless
/// element around those of the top level. Throws UsageError.
XmlElement parse_xml(std::string_view text);

}  // namespace dic::camera
