//! Lanes: how requests are sent changes their price and no key.

use super::project::Project;

#[test]
fn an_unknown_lane_is_an_error_at_its_place() {
    let project = Project::offline();
    project.edit("pipeline.toml", "[[judge]]", "[[judge]]\nlane = \"fast\"");
    project
        .expect(2, "check")
        .says(&["unknown lane `fast`", "pipeline.toml"]);
    project.expect(2, "plan --lane slow").says(&["live, batch"]);
}
